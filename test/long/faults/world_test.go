package faults

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/proxy"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// The workloads, which have their names from what an update does to them. The Pods of guarded have a sidecar and a budget, too.
const (
	namespace = "faults"
	nodes     = 6
	guarded   = "in-place"
	recreated = "recreated"
	numbered  = "numbered"
	daemons   = "daemons"
	sidecar   = "log"
	// registry makes the names of images whole: nodes tell them so.
	registry = "docker.io/library/"

	guardedReplicas, recreatedReplicas, numberedReplicas = 10, 8, 5
	// budget is how many Pods of guarded may be out of service, whoever takes them out of it; its own limit is higher.
	budget = 2
)

// world is a cluster, and managers behind proxies.
type world struct {
	*scene.Stage
	rand *rand.Rand
}

// replica is a manager, and the proxy that it reaches the API server through.
type replica struct {
	*cluster.Manager
	*proxy.Proxy
}

// launch starts a manager behind a proxy of its own, and waits until it is ready.
func (w *world) launch(name string, rules ...proxy.Rule) replica {
	w.Helper()
	p, err := proxy.New(w.Config, w.rand.Uint64())
	w.Must(err)
	w.Cleanup(p.Close)
	p.Set(rules...)
	honest, err := w.ManagerKubeconfig(w.Ctx, w.Dir)
	w.Must(err)
	through := filepath.Join(w.Dir, name+".kubeconfig")
	w.Must(p.Kubeconfig(honest, through))
	m := w.Launch(name, cluster.ManagerOptions{Args: []string{"--kubeconfig", through, "--feature-gates=PodUnavailableBudgetUpdateGate=true"}})
	w.Must(m.WaitReady(w.Ctx))
	return replica{m, p}
}

func (w *world) create() {
	w.Helper()
	w.Must(w.Client.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	two := intstr.FromInt32(budget)
	guard := &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: namespace}}
	guard.Spec.Selector, guard.Spec.MaxUnavailable = selecting(guarded), &two
	all := intstr.FromString("100%")
	sidecars := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: sidecar}}
	sidecars.Spec.Selector = selecting(guarded)
	sidecars.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: sidecar, Image: registry + "log:v1"}}}
	sidecars.Spec.UpdateStrategy.MaxUnavailable = &all
	for _, o := range []client.Object{guard, sidecars, newGuarded(), newRecreated(), newNumbered(), newDaemons()} {
		w.Must(w.Client.Create(w.Ctx, o))
	}
}

func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: registry + "app:v1"}}},
	}
}

func claims() []corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return []corev1.PersistentVolumeClaim{claim}
}

func cloneSet(name string, replicas int32) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = &replicas, selecting(name), template(name)
	return set
}

func newGuarded() *v1beta1.CloneSet {
	set := cloneSet(guarded, guardedReplicas)
	four := intstr.FromInt32(2 * budget)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		MaxUnavailable: &four, PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType,
		InPlaceUpdateStrategy: &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 1},
	}
	return set
}

func newRecreated() *v1beta1.CloneSet {
	set := cloneSet(recreated, recreatedReplicas)
	two := intstr.FromInt32(2)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: &two, MaxSurge: &two}
	set.Spec.VolumeClaimTemplates = claims()
	return set
}

func newNumbered() *v1beta1.StatefulSet {
	replicas, two := int32(numberedReplicas), intstr.FromInt32(2)
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: numbered, Namespace: namespace}}
	set.Spec.Replicas, set.Spec.Selector, set.Spec.Template, set.Spec.ServiceName = &replicas, selecting(numbered), template(numbered), numbered
	set.Spec.PodManagementPolicy, set.Spec.VolumeClaimTemplates = appsv1.ParallelPodManagement, claims()
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &two}
	return set
}

func newDaemons() *v1beta1.DaemonSet {
	two := intstr.FromInt32(2)
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: daemons, Namespace: namespace}}
	set.Spec.Selector, set.Spec.Template = selecting(daemons), template(daemons)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{
		RollingUpdateDaemonSetBase: v1beta1.RollingUpdateDaemonSetBase{MaxUnavailable: &two},
	}
	return set
}

// edit changes an object, as often as it takes: webhooks are slow while faults are at work.
func edit[T client.Object](w *world, name string, object T, change func(T)) {
	w.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if _, global := client.Object(object).(*v1beta1.SidecarSet); global {
		key.Namespace = ""
	}
	w.Eventually("a user changes "+name, func() error {
		if err := w.Client.Get(w.Ctx, key, object); err != nil {
			return err
		}
		change(object)
		return w.Client.Update(w.Ctx, object)
	})
}

func (w *world) image(of string) string {
	return fmt.Sprintf("%s%s:v%d", registry, of, 1+w.rand.IntN(4))
}

// act does something that users do.
func (w *world) act() {
	w.Helper()
	app := w.image("app")
	switch w.rand.IntN(10) {
	case 0, 1:
		edit(w, guarded, &v1beta1.CloneSet{}, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = app })
	case 2:
		edit(w, sidecar, &v1beta1.SidecarSet{}, func(s *v1beta1.SidecarSet) { s.Spec.Containers[0].Image = w.image("log") })
	case 3, 4:
		edit(w, recreated, &v1beta1.CloneSet{}, func(s *v1beta1.CloneSet) {
			partition := intstr.FromInt32(w.rand.Int32N(recreatedReplicas))
			*s.Spec.Replicas = recreatedReplicas - 2 + w.rand.Int32N(5)
			s.Spec.UpdateStrategy.RollingUpdate.Partition = &partition
			s.Spec.Template.Spec.Containers[0].Image = app
		})
	case 5, 6:
		edit(w, numbered, &v1beta1.StatefulSet{}, func(s *v1beta1.StatefulSet) {
			*s.Spec.Replicas = numberedReplicas - 1 + w.rand.Int32N(3)
			s.Spec.Template.Spec.Containers[0].Image = app
		})
	case 7:
		edit(w, daemons, &v1beta1.DaemonSet{}, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = app })
	case 8:
		w.remove(func(p *corev1.Pod) bool { return p.Labels["app"] != guarded }, func(p *corev1.Pod) error { return w.Client.Delete(w.Ctx, p) })
	default:
		w.remove(func(p *corev1.Pod) bool { return p.Labels["app"] == guarded }, func(p *corev1.Pod) error {
			return w.Client.SubResource("eviction").Create(w.Ctx, p, &policyv1.Eviction{})
		})
	}
}

// remove tries to remove one of the Pods that are wanted. Budgets may refuse it, and so may webhooks that time out.
func (w *world) remove(isWanted func(*corev1.Pod) bool, try func(*corev1.Pod) error) {
	w.Helper()
	var pods corev1.PodList
	w.Must(w.Client.List(w.Ctx, &pods, client.InNamespace(namespace)))
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !isWanted(&p) })
	if len(pods.Items) == 0 {
		return
	}
	p := &pods.Items[w.rand.IntN(len(pods.Items))]
	if err := try(p); err != nil {
		w.Logf("removing %s: %v", p.Name, err)
	}
}

// relent lifts what keeps rollouts from ending.
func (w *world) relent() {
	w.Helper()
	edit(w, recreated, &v1beta1.CloneSet{}, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
}

// settled waits until all workloads are as they should be.
func (w *world) settled() {
	w.Helper()
	w.Eventually("all workloads are as their specs say", func() error {
		for _, name := range []string{guarded, recreated} {
			s := &v1beta1.CloneSet{}
			if err := w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
				return err
			}
			if err := complete(s, *s.Spec.Replicas, s.Status.ObservedGeneration, s.Status.Replicas, s.Status.UpdatedAvailableReplicas); err != nil {
				return err
			}
		}
		s, d := &v1beta1.StatefulSet{}, &v1beta1.DaemonSet{}
		if err := w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: numbered}, s); err != nil {
			return err
		}
		if err := complete(s, *s.Spec.Replicas, s.Status.ObservedGeneration, s.Status.Replicas, s.Status.UpdatedAvailableReplicas); err != nil {
			return err
		}
		if err := w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: daemons}, d); err != nil {
			return err
		}
		return complete(d, nodes, d.Status.ObservedGeneration, d.Status.UpdatedNumberScheduled, d.Status.NumberAvailable)
	})
	w.sidecarsSettled()
	w.Eventually("the budget waits for nothing that it has permitted", func() error {
		b := &policyv1beta1.PodUnavailableBudget{}
		if err := w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "guard"}, b); err != nil {
			return err
		}
		if n := len(b.Status.DisruptedPods) + len(b.Status.UnavailablePods); n > 0 {
			return fmt.Errorf("%d Pods are recorded in its status", n)
		}
		return nil
	})
}

func complete(o client.Object, want int32, observed int64, numbers ...int32) error {
	if observed != o.GetGeneration() || slices.ContainsFunc(numbers, func(n int32) bool { return n != want }) {
		return fmt.Errorf("%s: generation %d of %d, %v of %d Pods", o.GetName(), observed, o.GetGeneration(), numbers, want)
	}
	return nil
}

func (w *world) sidecarsSettled() {
	w.Helper()
	w.Eventually("all sidecars are updated", func() error {
		s := &v1beta1.SidecarSet{}
		if err := w.Client.Get(w.Ctx, client.ObjectKey{Name: sidecar}, s); err != nil {
			return err
		}
		return complete(s, guardedReplicas, s.Status.ObservedGeneration, s.Status.MatchedPods, s.Status.UpdatedReadyPods)
	})
}

// quiet checks that a manager that has nothing to do writes nothing. Nodes get their NodeImages when they have been ready for a minute,
// whatever else goes on.
func (w *world) quiet(of replica) {
	w.Helper()
	written := func(from time.Time) (out []string) {
		for _, asked := range of.Record().Requests(from) {
			if asked.IsWrite() && asked.IsWork() && asked.Resource != "events" && asked.Resource != "nodeimages" && asked.Code < 400 {
				out = append(out, fmt.Sprintf("%s %s %s", asked.Verb, asked.Resource, asked.Name))
			}
		}
		return out
	}
	w.Within(time.Minute, "the manager is at rest", func() error {
		if late := written(time.Now().Add(-3 * time.Second)); len(late) > 0 {
			return fmt.Errorf("it has just done %q", late)
		}
		return nil
	})
	at := time.Now()
	time.Sleep(3 * time.Second)
	if late := written(at); len(late) > 0 {
		w.Errorf("although all is as it should be, the manager writes: %q", late)
	}
}
