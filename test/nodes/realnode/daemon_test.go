package realnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// nodes are those of the cluster.
func nodes() []string { return []string{"real-0", "real-1"} }

// wantImage has a node pull an image of nginx.
func (w *world) wantImage(node, tag string, retries int32) {
	w.Helper()
	image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := w.Client.Create(w.Ctx, image); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(image), image))
	before := image.DeepCopy()
	image.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{{
		Tag: tag, CreatedAt: ptr.To(metav1.Now()), ImagePullPolicy: v1beta1.PullIfNotPresent,
		PullPolicy: &v1beta1.ImageTagPullPolicy{
			TTLSecondsAfterFinished: ptr.To[int32](3600), BackoffLimit: &retries, TimeoutSeconds: ptr.To[int32](120),
		},
	}}}}
	w.Must(w.Client.Patch(w.Ctx, image, client.MergeFrom(before)))
}

// pullStatus returns what a node says of an image of nginx.
func (w *world) pullStatus(node, tag string) v1beta1.ImageTagStatus {
	w.Helper()
	image := &v1beta1.NodeImage{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Name: node}, image))
	for _, status := range image.Status.ImageStatuses["nginx"].Tags {
		if status.Tag == tag {
			return status
		}
	}
	return v1beta1.ImageTagStatus{}
}

func (w *world) pullComesTo(node, tag string, phase v1beta1.ImagePullPhase) v1beta1.ImageTagStatus {
	w.Helper()
	w.Eventually(fmt.Sprintf("node %s says %s of nginx:%s", node, phase, tag), func() error {
		if status := w.pullStatus(node, tag); status.Phase != phase {
			return fmt.Errorf("it says %+v", status)
		}
		return nil
	})
	return w.pullStatus(node, tag)
}

// messages returns those of the events of a reason about an object.
func (w *world) messages(namespace, name, reason string) []string {
	w.Helper()
	var events corev1.EventList
	w.Must(w.Client.List(w.Ctx, &events, client.InNamespace(namespace)))
	var out []string
	for _, e := range events.Items {
		if e.InvolvedObject.Name == name && e.Reason == reason {
			out = append(out, e.Message)
		}
	}
	return out
}

func (w *world) pullAhead() {
	s := set("ahead", 2)
	s.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent // a CloneSet's default is Always, which asks the registry
	w.Must(w.Client.Create(w.Ctx, s))
	w.settled("ahead")
	for _, node := range nodes() {
		w.wantImage(node, "1.26", 0)
	}
	for _, node := range nodes() {
		w.pullComesTo(node, "1.26", v1beta1.ImagePhaseSucceeded)
	}
	w.edit("ahead", image("nginx:1.26"))
	w.settled("ahead")
	for _, p := range w.pods("ahead") {
		if status := pod.ContainerStatus(&p, "web"); status.RestartCount != 1 {
			w.Errorf("container web of %s restarted %d times, want 1", p.Name, status.RestartCount)
		}
		if pulling := strings.Join(w.messages(namespace, p.Name, "Pulling"), "\n"); strings.Contains(pulling, "nginx:1.26") {
			w.Errorf("the kubelet pulled for %s: %s", p.Name, pulling)
		}
		if pulled := strings.Join(w.messages(namespace, p.Name, "Pulled"), "\n"); !strings.Contains(pulled, `"nginx:1.26" already present`) {
			w.Errorf("of the images of %s the kubelet says: %s", p.Name, pulled)
		}
	}
}

func (w *world) refuse() {
	w.wantImage("real-0", "no-such", 1)
	status := w.pullComesTo("real-0", "no-such", v1beta1.ImagePhaseFailed)
	if !strings.Contains(status.Message, "nginx:no-such: not found") {
		w.Errorf("the message is %q, want what the registry said", status.Message)
	}
	w.Eventually("there is an event", func() error {
		if len(w.messages("default", "real-0", "PullImageFailed")) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
}

// process returns the id of one of the cluster's processes.
func (w *world) process(component string) int {
	w.Helper()
	id, err := w.ProcessOf(w.Ctx, component)
	w.Must(err)
	return id
}

// interrupt has the registry stand still in the middle of a pull, in which first the daemon is killed and then the container runtime.
func (w *world) interrupt() {
	registry, daemon, runtime := w.process("registry"), w.process("kruise-daemon@real-0"), w.process("containerd@real-0")
	w.Must(syscall.Kill(registry, syscall.SIGSTOP))
	w.Cleanup(func() { _ = syscall.Kill(registry, syscall.SIGCONT) }) // an error means that it has ended
	w.wantImage("real-0", "1.25", 0)
	begun := w.pullComesTo("real-0", "1.25", v1beta1.ImagePhasePulling)
	w.Must(syscall.Kill(daemon, syscall.SIGKILL))
	_, err := w.Local(w.Ctx, "up")
	w.Must(err)
	time.Sleep(2 * time.Second) // it pulls again
	w.Must(syscall.Kill(runtime, syscall.SIGKILL))
	time.Sleep(time.Second)
	w.Must(syscall.Kill(registry, syscall.SIGCONT))
	_, err = w.Local(w.Ctx, "up")
	w.Must(err)
	done := w.pullComesTo("real-0", "1.25", v1beta1.ImagePhaseSucceeded)
	if !done.StartTime.Equal(begun.StartTime) || done.Message != "" {
		w.Errorf("the pull began as %+v and ended as %+v, want one round and no complaint", begun, done)
	}
	if failed := w.messages("default", "real-0", "PullImageFailed"); strings.Contains(strings.Join(failed, "\n"), "1.25") {
		w.Errorf("the pull was said to have failed: %s", failed)
	}
}

func (w *world) environment() {
	s := set("env", 2)
	s.Spec.Template.Annotations = map[string]string{"tier": "gold"}
	s.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{
		Name: "TIER", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['tier']"}},
	}}
	w.Must(w.Client.Create(w.Ctx, s))
	w.settled("env")
	before := w.pods("env")
	w.Eventually("the Pods tell what they run with", func() error {
		for _, p := range w.pods("env") {
			var told pub.RuntimeContainerMetaSet
			if err := json.Unmarshal([]byte(p.Annotations[keys.RuntimeContainersMeta]), &told); err != nil || len(told.Containers) != 2 {
				return fmt.Errorf("Pod %s tells %+v, %w", p.Name, told, err)
			}
		}
		return nil
	})
	w.edit("env", func(s *v1beta1.CloneSet) { s.Spec.Template.Annotations["tier"] = "silver" })
	w.settled("env")
	w.expectTier(before, "silver", 0, 1)

	// With an image, it is one restart for both.
	w.edit("env", func(s *v1beta1.CloneSet) {
		s.Spec.Template.Annotations["tier"] = "bronze"
		s.Spec.Template.Spec.Containers[1].Image = "busybox:1.37"
	})
	w.settled("env")
	w.expectTier(before, "bronze", 0, 2)

	// What somebody changes by hand restarts nothing.
	for i := range before {
		_, err := w.Kubectl(w.Ctx, "-n", namespace, "annotate", "pod", before[i].Name, "tier=lead", "--overwrite")
		w.Must(err)
	}
	time.Sleep(5 * time.Second)
	w.expectTier(before, "bronze", 0, 2)
}

// expectTier checks that the Pods are still the same ones, that container side runs with a tier, and how often each container has restarted.
func (w *world) expectTier(before []corev1.Pod, tier string, web, side int32) {
	w.Helper()
	for i, p := range w.pods("env") {
		if p.UID != before[i].UID || p.Status.PodIP != before[i].Status.PodIP {
			w.Errorf("Pod %s was %s, is %s", p.Name, before[i].UID, p.UID)
		}
		if got := w.run(&p, "side", "sh", "-c", "echo $TIER"); got != tier {
			w.Errorf("container side of %s runs with %q, want %q", p.Name, got, tier)
		}
		restarts := []int32{pod.ContainerStatus(&p, "web").RestartCount, pod.ContainerStatus(&p, "side").RestartCount}
		if restarts[0] != web || restarts[1] != side {
			w.Errorf("the containers of %s restarted %v times, want %d and %d", p.Name, restarts, web, side)
		}
	}
}

// daemonPods takes the daemons beside the nodes away, and lets those of the manifests find the sockets that nodes of this machine have.
func (w *world) daemonPods() {
	_, err := w.Local(w.Ctx, "up", "--daemon", "none")
	w.Must(err)
	node := &corev1.Node{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Name: "real-0"}, node))
	site := strings.Split(node.Status.Addresses[0].Address, ".")[1] // nodes of one cluster are 10.SITE.I.1
	// They share the loopback, so that each daemon has to serve at the address of its node.
	// Nor is there a way from the network of this machine, which these nodes share with other clusters, to the Service of this one's API server.
	host, err := url.Parse(w.Config.Host)
	w.Must(err)
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"affinity":null,
		"volumes":[{"name":"local","hostPath":{"path":"/run/kruise-local"}}],"containers":[{"name":"daemon",
		"volumeMounts":[{"name":"local","mountPath":"/hostvarrun/kruise-local","readOnly":true}],
		"readinessProbe":{"httpGet":{"host":null}},"livenessProbe":{"httpGet":{"host":null}},
		"args":["--addr=:10221","--socket-file=kruise-local/%s/$(NODE_NAME)/containerd.sock"],
		"env":[{"name":"KUBERNETES_SERVICE_HOST","value":%q},{"name":"KUBERNETES_SERVICE_PORT","value":%q}]}]}}}}`, site, host.Hostname(), host.Port())
	_, err = w.Kubectl(w.Ctx, "-n", system, "patch", "daemonset", "kruise-daemon", "--type=strategic", "-p", patch)
	w.Must(err)
	_, err = w.Kubectl(w.Ctx, "-n", system, "rollout", "status", "--timeout=90s", "daemonset/kruise-daemon")
	w.Must(err)
	for _, node := range nodes() {
		w.wantImage(node, "1.24", 0)
	}
	for _, node := range nodes() {
		w.pullComesTo(node, "1.24", v1beta1.ImagePhaseSucceeded)
	}
}
