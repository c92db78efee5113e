// Package realnode tries on real kubelets and containers what simulated nodes can only pretend, with the manager as Pods, installed as a user
// would install it.
package realnode

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/build"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const (
	namespace = "real"
	system    = "kruise-system"
)

func TestMain(m *testing.M) { scene.Main(m) }

// world is a cluster of two real nodes with the manager in it.
type world struct{ *scene.Stage }

func TestOnRealNodes(t *testing.T) {
	w := &world{scene.NewStage(t, cluster.Options{RealNodes: 2})}
	w.Describe = func() string {
		events, _ := w.Kubectl(w.Ctx, "get", "events,pods", "-A", "--sort-by=.metadata.creationTimestamp") // only more to read
		return events
	}
	w.Must(w.InstallChart(w.Ctx))
	w.Must(w.Client.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	t.Run("beside each other", func(t *testing.T) {
		for name, test := range map[string]func(*world){
			"an update in place changes one container and nothing else":                            (*world).updateInPlace,
			"an image that can't be pulled holds the rollout, and rolling back frees it":           (*world).badImage,
			"a StatefulSet keeps its Pods in place, and their claims whatever becomes of the Pods": (*world).statefulSet,
			"claims of a StatefulSet go along with surplus Pods":                                   (*world).claimsGoWithPods,
			"a DaemonSet keeps its Pods in place":                                                  (*world).daemonSetInPlace,
			"a DaemonSet is never missing while it surges":                                         (*world).daemonSetSurges,
			"sidecars of all kinds are updated":                                                    (*world).updateSidecars,
			"a Pod is never unready while a sidecar is upgraded hot":                               (*world).upgradeHot,
			"an environment that comes from an annotation changes in place":                        (*world).environment,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(w.on(t))
			})
		}
	})
	// These measure times, or end what the others need.
	t.Run("the leader is killed during a rollout", func(t *testing.T) { w.on(t).killLeader() })
	t.Run("a node is drained through a WorkloadSpread and a budget", func(t *testing.T) { w.on(t).drain() })
	t.Run("containers start in the order of their priorities", func(t *testing.T) { w.on(t).launchInOrder() })
	t.Run("sidecars do not keep Jobs from ending", func(t *testing.T) { w.on(t).terminateSidecars() })
	t.Run("an image that was pulled ahead needs no pull when a Pod is updated in place", func(t *testing.T) { w.on(t).pullAhead() })
	t.Run("a registry that has no such image is told of", func(t *testing.T) { w.on(t).refuse() })
	t.Run("a pull outlives the daemon and the container runtime", func(t *testing.T) { w.on(t).interrupt() })
	t.Run("the daemon runs as a Pod on every node", func(t *testing.T) { w.on(t).daemonPods() })
}

func (w *world) on(t *testing.T) *world { return &world{w.On(t)} }

// set returns a CloneSet of Pods with two containers and a claim, which updates in place where it can.
func set(name string, replicas int32) *v1beta1.CloneSet {
	labels := map[string]string{"app": name}
	unavailable := intstr.FromInt32(1)
	s := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1beta1.CloneSetSpec{
			CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{
				Replicas:             &replicas,
				Selector:             &metav1.LabelSelector{MatchLabels: labels},
				Template:             template(labels),
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{build.ClaimTemplate("data", "1Gi")},
			},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
				MaxUnavailable: &unavailable, PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType,
			}},
		},
	}
	return s
}

// template has two containers, the first of which mounts a volume that is not in the template.
func template(labels map[string]string) corev1.PodTemplateSpec {
	grace := int64(1)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{
				{Name: "web", Image: "nginx:alpine", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}},
				{Name: "side", Image: "busybox:1.36", Command: []string{"sleep", "100000"}},
			},
		},
	}
}

func (w *world) edit(name string, change func(*v1beta1.CloneSet)) {
	w.Helper()
	s := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.editObject(s, func() { change(s) })
}

// editObject reads an object by its name, has it changed, and writes it.
func (w *world) editObject(object client.Object, change func()) {
	w.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: object.GetName()}
	// While a leader is being replaced, the webhooks may not answer for a moment.
	patience := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.3, Steps: 20}
	w.Must(retry.OnError(patience, func(error) bool { return true }, func() error {
		if err := w.Client.Get(w.Ctx, key, object); err != nil {
			return err
		}
		change()
		return w.Client.Update(w.Ctx, object)
	}))
}

func image(image string) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = image }
}

func (w *world) settled(name string) {
	w.Helper()
	w.Eventually(name+" has settled", func() error {
		s := &v1beta1.CloneSet{}
		if err := w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
			return err
		}
		want := *s.Spec.Replicas
		got := []int32{s.Status.Replicas, s.Status.UpdatedReplicas, s.Status.UpdatedAvailableReplicas}
		if s.Status.ObservedGeneration != s.Generation || !slices.Equal(got, []int32{want, want, want}) {
			return fmt.Errorf("replicas, updated, available are %v", got)
		}
		return nil
	})
}

func (w *world) pods(name string) []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	w.Must(w.Client.List(w.Ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": name}))
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// run runs a command in a container and returns what it printed.
func (w *world) run(p *corev1.Pod, container string, command ...string) string {
	w.Helper()
	out, err := w.Kubectl(w.Ctx, append([]string{"-n", p.Namespace, "exec", p.Name, "-c", container, "--"}, command...)...)
	w.Must(err)
	return strings.TrimSpace(out)
}

func (w *world) updateInPlace() {
	const grace = 4
	s := set("keeper", 2)
	s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: grace}
	w.Must(w.Client.Create(w.Ctx, s))
	w.settled("keeper")
	before := w.takeNotes("keeper")
	h := w.follow()
	w.edit("keeper", image("nginx:mainline"))
	w.settled("keeper")
	w.Must(h.stop())
	w.changedInPlace("keeper", before)
	for i := range before {
		h.outOfServiceFirst(w.T, before[i].UID, grace*time.Second)
	}
}

// takeNotes writes notes in the Pods' volumes and in their containers, and returns the Pods.
func (w *world) takeNotes(name string) []corev1.Pod {
	w.Helper()
	pods := w.pods(name)
	for i := range pods {
		w.run(&pods[i], "web", "sh", "-c", "echo kept > /data/note; echo lost > /tmp/note")
		w.run(&pods[i], "side", "sh", "-c", "echo kept > /tmp/note")
	}
	return pods
}

// changedInPlace checks that the Pods are those of before, that container web alone was started again, with the image nginx:mainline, and that the
// volumes are as they were.
func (w *world) changedInPlace(name string, before []corev1.Pod) {
	w.Helper()
	after := w.pods(name)
	if len(after) != len(before) {
		w.Fatalf("there are %d Pods, want %d", len(after), len(before))
	}
	for i := range after {
		w.sameButImage(&before[i], &after[i])
		if tag := w.run(&after[i], "web", "cat", "/etc/image-tag"); tag != "mainline" {
			w.Errorf("container web of %s runs tag %q, want mainline", after[i].Name, tag)
		}
		if page := w.run(&after[i], "side", "wget", "-q", "-O", "-", "http://"+after[i].Status.PodIP+"/"); page != "mainline" {
			w.Errorf("Pod %s serves %q at its address, want the page of mainline", after[i].Name, page)
		}
		if note := w.run(&after[i], "web", "sh", "-c", "cat /data/note; cat /tmp/note || true"); note != "kept" {
			w.Errorf("container web of %s finds %q, want the note on the volume and none in its old file system", after[i].Name, note)
		}
		if note := w.run(&after[i], "side", "cat", "/tmp/note"); note != "kept" {
			w.Errorf("container side of %s finds %q: it was restarted", after[i].Name, note)
		}
	}
}

func (w *world) sameButImage(before, after *corev1.Pod) {
	w.Helper()
	if before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName || before.Status.PodIP != after.Status.PodIP {
		w.Errorf("Pod %s was %s at %s on %s, is %s at %s on %s", before.Name,
			before.UID, before.Status.PodIP, before.Spec.NodeName, after.UID, after.Status.PodIP, after.Spec.NodeName)
	}
	for _, name := range []string{"web", "side"} {
		was, is := pod.ContainerStatus(before, name), pod.ContainerStatus(after, name)
		restarts := map[string]int32{"web": 1}[name]
		if is.RestartCount-was.RestartCount != restarts {
			w.Errorf("container %s of %s restarted %d times, want %d", name, after.Name, is.RestartCount-was.RestartCount, restarts)
		}
		if changed := was.ImageID != is.ImageID; changed != (name == "web") {
			w.Errorf("container %s of %s had image %s, has %s", name, after.Name, was.ImageID, is.ImageID)
		}
	}
}

func (w *world) badImage() {
	w.Must(w.Client.Create(w.Ctx, set("careful", 3)))
	w.settled("careful")
	before := w.pods("careful")
	w.edit("careful", image("nginx:no-such"))
	w.Eventually("one Pod can't pull its image", func() error {
		for _, p := range w.pods("careful") {
			status := pod.ContainerStatus(&p, "web")
			if status != nil && status.State.Waiting != nil && strings.Contains(status.State.Waiting.Reason, "ImagePull") {
				return nil
			}
		}
		return errors.New("none says so")
	})
	ready := 0
	for _, p := range w.pods("careful") {
		if pod.IsReady(&p) {
			ready++
		}
	}
	if ready != 2 {
		w.Errorf("%d Pods are ready while one can't pull its image, want the other 2", ready)
	}
	w.edit("careful", image("nginx:alpine"))
	w.settled("careful")
	for i, p := range w.pods("careful") {
		if p.UID != before[i].UID {
			w.Errorf("Pod %s was recreated", p.Name)
		}
	}
}

func (w *world) killLeader() {
	s := set("survivor", 6)
	w.Must(w.Client.Create(w.Ctx, s))
	w.settled("survivor")
	before := w.pods("survivor")
	h := w.follow()
	leader := w.leader()
	w.edit("survivor", image("nginx:1.27"))
	w.Eventually("the rollout has begun", func() error {
		if n := w.updated("survivor"); n == 0 || n > 3 {
			return fmt.Errorf("%d Pods are updated", n)
		}
		return nil
	})
	_, err := w.Kubectl(w.Ctx, "-n", system, "delete", "pod", leader, "--grace-period=0", "--force")
	w.Must(err)
	w.settled("survivor")
	if now := w.leader(); now == leader {
		w.Errorf("%s is still the leader", now)
	}
	w.Must(h.stop())
	h.neverFewerReady(w.T, "survivor", len(before)-1)
	for i, p := range w.pods("survivor") {
		if p.UID != before[i].UID {
			w.Errorf("Pod %s was recreated", p.Name)
		}
	}
}

// leader returns the name of the manager's Pod that holds the lease.
func (w *world) leader() string {
	w.Helper()
	lease := &coordinationv1.Lease{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: system, Name: "kruise-manager"}, lease))
	if lease.Spec.HolderIdentity == nil {
		w.Fatal("nobody leads")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name
}

func (w *world) updated(name string) int32 {
	w.Helper()
	s := &v1beta1.CloneSet{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, s))
	if s.Status.ObservedGeneration != s.Generation {
		return 0
	}
	return s.Status.UpdatedReplicas
}
