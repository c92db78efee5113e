package statefulset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func TestParallelUpdateStaysWithinMaxUnavailable(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(5), claims("data"), unavailable(intstr.FromInt32(2)))
	e.settled(at("1.27", 0, 1, 2, 3, 4)...)
	var before []string
	for _, p := range e.allPods() {
		before = append(before, string(p.UID))
	}
	claim, err := e.claim("data-web-4")
	e.Must(err)
	watch := e.watchAvailable()
	e.edit(image("nginx:1.28"))
	e.settled(at("1.28", 0, 1, 2, 3, 4)...)
	if least := watch(); least < 3 {
		t.Errorf("there were %d available Pods, want 3 at least", least)
	}
	for _, p := range e.allPods() {
		if slices.Contains(before, string(p.UID)) {
			t.Errorf("%s is the old one", p.Name)
		}
	}
	if again, err := e.claim("data-web-4"); err != nil || again.UID != claim.UID {
		t.Errorf("its claim is another one: %v", err)
	}
	e.Eventually("the status says that the update is over", func() error {
		if s := e.set().Status; s.CurrentRevision != s.UpdateRevision || s.CurrentReplicas != 5 || s.UpdatedReplicas != 5 {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	e.Eventually("there is an event for each Pod", func() error {
		var events corev1.EventList
		e.Must(e.List(e.Ctx, &events, client.InNamespace(e.Namespace)))
		told := map[string]bool{}
		for _, event := range events.Items {
			if event.Reason == "SuccessfulDelete" && event.Source.Component == "statefulset-controller" {
				told[event.Message] = true
			}
		}
		if len(told) != 5 || !told["delete Pod web-4 in StatefulSet web successful"] {
			return fmt.Errorf("the events are %v", told)
		}
		return nil
	})
}

func TestPartition(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(5), partition(3), unavailable(intstr.FromString("100%")))
	e.settled(at("1.27", 0, 1, 2, 3, 4)...)
	e.edit(image("nginx:1.28"))
	canary := slices.Concat(at("1.27", 0, 1, 2), at("1.28", 3, 4))
	e.settled(canary...)
	for _, n := range []int{1, 4} {
		e.deletePod(n)
		e.settled(canary...)
	}
	e.edit(partition(32767))
	e.Never("anything moves", func() bool { return e.set().Status.UpdatedReplicas != 2 })
	e.edit(rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = nil }))
	e.settled(at("1.28", 0, 1, 2, 3, 4)...)
}

func TestPartitionCountsPodsWhereOrdinalsAreReserved(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(9), partition(5), reserve(intstr.FromInt32(3), intstr.FromInt32(4)), unavailable(intstr.FromString("100%")))
	e.settled(at("1.27", 0, 1, 2, 5, 6, 7, 8, 9, 10)...)
	e.edit(image("nginx:1.28"))
	want := slices.Concat(at("1.27", 0, 1, 2, 5, 6), at("1.28", 7, 8, 9, 10))
	e.settled(want...)
	e.deletePod(6)
	e.settled(want...)
}

func TestUnorderedUpdate(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(5), partition(3), unavailable(intstr.FromString("100%")), rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) {
		r.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{PriorityStrategy: &pub.UpdatePriorityStrategy{
			WeightPriority: []pub.UpdatePriorityWeightTerm{{Weight: 100, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "b"}}}},
		}}
	}))
	e.settled(at("1.27", 0, 1, 2, 3, 4)...)
	for _, n := range []int{1, 3} {
		e.patchPod(n, func(p *corev1.Pod) { p.Labels["zone"] = "b" })
	}
	// The controller must have seen the labels. It hears of Pods in the order of their changes, so it has once it replaces one that goes
	// after.
	before := e.uid(0)
	e.deletePod(0)
	e.Eventually("Pod 0 is replaced", func() error {
		if now := e.uid(0); now == "" || now == before {
			return fmt.Errorf("it is %q", now)
		}
		return nil
	})
	e.edit(image("nginx:1.28"))
	e.settled("0 1.27", "1 1.28", "2 1.27", "3 1.28", "4 1.27")
}

func TestPausedUpdateLetsScalingGoOn(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(4), partition(2))
	e.settled(at("1.27", 0, 1, 2, 3)...)
	e.edit(image("nginx:1.28"))
	e.settled("0 1.27", "1 1.27", "2 1.28", "3 1.28")
	e.edit(rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.Paused, r.Partition = true, nil }), replicas(5))
	e.settled("0 1.27", "1 1.27", "2 1.28", "3 1.28", "4 1.28")
	before := e.uid(3)
	e.patchPod(3, func(p *corev1.Pod) { p.Labels[keys.SpecifiedDelete] = "true" })
	e.Eventually("Pod 3 is replaced although the update is paused", func() error {
		if now := e.uid(3); now == "" || now == before {
			return fmt.Errorf("it is %q", now)
		}
		return nil
	})
	e.edit(rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.Paused = false }))
	e.settled(at("1.28", 0, 1, 2, 3, 4)...)
}

func TestInPlaceUpdateKeepsThePod(t *testing.T) {
	e := newEnv(t)
	const grace = 2
	e.create(policy(v1beta1.InPlaceIfPossiblePodUpdateStrategyType), rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) {
		r.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: grace}
	}))
	e.settled(at("1.27", 0, 1, 2)...)
	before := e.allPods()
	e.edit(image("nginx:1.28"))
	e.settled(at("1.28", 0, 1, 2)...)
	for i, p := range e.allPods() {
		if p.UID != before[i].UID || p.Status.PodIP != before[i].Status.PodIP || p.Spec.NodeName != before[i].Spec.NodeName {
			t.Errorf("%s is another Pod, has another address or another node", p.Name)
		}
		if p.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("%s has restarted %d times", p.Name, p.Status.ContainerStatuses[0].RestartCount)
		}
	}
	e.edit(func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	})
	e.Eventually("all are new", func() error {
		for i, p := range e.allPods() {
			if i >= len(before) || p.UID == before[i].UID {
				return fmt.Errorf("%s is the old one", p.Name)
			}
		}
		return nil
	})
	e.settled(at("1.28", 0, 1, 2)...)
}

func TestInPlaceOnlyRefusesOtherChanges(t *testing.T) {
	e := newEnv(t)
	e.create(policy(v1beta1.InPlaceOnlyPodUpdateStrategyType))
	e.settled(at("1.27", 0, 1, 2)...)
	for name, change := range map[string]func(*corev1.Container){
		"env":             func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} },
		"imagePullPolicy": func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullNever },
	} {
		err := e.tryEdit(func(set *v1beta1.StatefulSet) { change(&set.Spec.Template.Spec.Containers[0]) })
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("changing %s answers %v, want that it is refused", name, err)
		}
	}
	e.edit(image("nginx:1.28"))
	e.settled(at("1.28", 0, 1, 2)...)
}

func TestBrokenPodsAreMendedByTheNextUpdate(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(5))
	e.settled(at("1.27", 0, 1, 2, 3, 4)...)
	e.edit(image("nginx:fail-pull"))
	e.Eventually("Pod 4 can't be pulled", func() error {
		p, err := e.tryPod(4)
		if err == nil && p.Spec.Containers[0].Image != "nginx:fail-pull" {
			err = fmt.Errorf("it runs %s", p.Spec.Containers[0].Image)
		}
		return err
	})
	e.edit(image("nginx:1.28"))
	e.settled(at("1.28", 0, 1, 2, 3, 4)...)
}

func TestOrderedRolloutMendsItself(t *testing.T) {
	e := newEnv(t)
	e.create(ordered, image("nginx:fail-pull"))
	e.Eventually("Pod 0 is broken", func() error {
		for _, p := range e.allPods() {
			for _, s := range p.Status.ContainerStatuses {
				if s.State.Waiting != nil && strings.Contains(s.State.Waiting.Reason, "Pull") {
					return nil
				}
			}
		}
		return fmt.Errorf("it is not yet")
	})
	before := e.uid(0)
	e.edit(image("nginx:1.28"), partition(3))
	e.Never("Pod 0 is replaced although the partition keeps it", func() bool { return e.uid(0) != before })
	e.edit(partition(0))
	e.settled(at("1.28", 0, 1, 2)...)
}

func TestSpecifiedDeleteWaitsForItsTurnAndForItsHook(t *testing.T) {
	e := newEnv(t)
	const hook = "example.com/drain"
	e.create(replicas(5), func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Finalizers = []string{hook}
		set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{FinalizersHandler: []string{hook}}}
	})
	t.Cleanup(func() {
		for _, p := range e.allPods() {
			before := p.DeepCopy()
			p.Finalizers = nil
			_ = shared.Client.Patch(t.Context(), &p, client.MergeFrom(before))
		}
	})
	e.settled(at("1.27", 0, 1, 2, 3, 4)...)
	three, four := e.uid(3), e.uid(4)
	for _, n := range []int{3, 4} {
		e.patchPod(n, func(p *corev1.Pod) { p.Labels[keys.SpecifiedDelete] = "true" })
	}
	preparing := func() []string {
		var out []string
		for _, p := range e.allPods() {
			if p.Labels[keys.LifecycleState] == string(pub.LifecycleStatePreparingDelete) {
				out = append(out, p.Name)
			}
		}
		return out
	}
	e.Eventually("one waits for its hook", func() error {
		if len(preparing()) == 0 {
			return fmt.Errorf("none does")
		}
		return nil
	})
	e.Never("two wait, or one goes", func() bool {
		return len(preparing()) != 1 || e.uid(3) != three || e.uid(4) != four || e.set().Status.AvailableReplicas < 4
	})
	letGo := func() {
		for _, name := range preparing() {
			p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
			err := e.Patch(e.Ctx, &p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			e.Must(client.IgnoreNotFound(err))
		}
	}
	e.Eventually("both are new", func() error {
		letGo()
		if a, b := e.uid(3), e.uid(4); a == "" || b == "" || a == three || b == four {
			return fmt.Errorf("they are %s and %s", a, b)
		}
		return nil
	})
	e.settled(at("1.27", 0, 1, 2, 3, 4)...)
	e.edit(replicas(0))
	e.Eventually("all are gone", func() error {
		letGo()
		if n := len(e.allPods()); n > 0 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
}

func TestStuckPodDoesNotHoldUpTheOthers(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(5), unavailable(intstr.FromInt32(3)))
	e.settled(at("1.27", 0, 1, 2, 3, 4)...)
	e.patchPod(1, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/stuck"} })
	e.deletePod(1)
	e.edit(image("nginx:1.28"))
	e.Eventually("the others are updated", func() error {
		if s := e.set().Status; s.UpdatedAvailableReplicas != 4 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	e.patchPod(1, func(p *corev1.Pod) { p.Finalizers = nil })
	e.settled(at("1.28", 0, 1, 2, 3, 4)...)
}

func TestLimitsThatCannotBeMeantAreRefused(t *testing.T) {
	e := newEnv(t)
	for name, change := range map[string]func(*v1beta1.StatefulSet){
		"no Pod may be unavailable":    unavailable(intstr.FromString("0%")),
		"more than all":                unavailable(intstr.FromString("101%")),
		"an order that needs Parallel": func(set *v1beta1.StatefulSet) { ordered(set); rolling(unordered)(set) },
		"too long a time to become ready": rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) {
			seconds := int32(301)
			r.MinReadySeconds = &seconds
		}),
	} {
		if err := e.tryCreate(change); !apierrors.IsInvalid(err) {
			t.Errorf("%s: answered %v, want that it is refused", name, err)
		}
	}
}

func unordered(r *v1beta1.RollingUpdateStatefulSetStrategy) {
	r.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{}
}

func TestProgressDeadline(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(2), func(set *v1beta1.StatefulSet) {
		deadline := int32(5)
		set.Spec.ProgressDeadlineSeconds = &deadline
	})
	progressing := func(want string) {
		t.Helper()
		e.Eventually("the condition Progressing is "+want, func() error {
			for _, c := range e.set().Status.Conditions {
				if got := fmt.Sprintf("%s %s", c.Status, c.Reason); c.Type == v1beta1.StatefulSetConditionProgressing && got != want {
					return fmt.Errorf("it is %s", got)
				} else if c.Type == v1beta1.StatefulSetConditionProgressing {
					return nil
				}
			}
			return errors.New("there is none")
		})
	}
	progressing("True StatefulSetAvailable")
	e.edit(image("nginx:never-ready"))
	progressing("False ProgressDeadlineExceeded")
	e.edit(image("nginx:1.29"))
	progressing("True StatefulSetAvailable")
	e.edit(partition(2), image("nginx:1.28"))
	progressing("True ProgressPartitionAvailable")
}
