package cloneset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/scene"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

const blocker = "example.io/unready-blocker"

// drain plays the user's own controller, which takes traffic from a Pod before it goes and gives it back after an update, until stop.
func (e *env) drain(name string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			var pods corev1.PodList
			if err := e.Client.List(ctx, &pods, client.InNamespace(e.Namespace), client.MatchingLabels{"app": name}); err != nil {
				continue // the next round reads again
			}
			for i := range pods.Items {
				e.handOver(ctx, &pods.Items[i])
			}
		}
	}()
	stop = func() { cancel(); <-done }
	e.Cleanup(stop)
	return stop
}

func (e *env) handOver(ctx context.Context, p *corev1.Pod) {
	before := p.DeepCopy()
	switch pub.LifecycleStateType(p.Labels[keys.LifecycleState]) {
	case pub.LifecycleStatePreparingDelete, pub.LifecycleStatePreparingUpdate:
		p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return f == blocker })
	case pub.LifecycleStateUpdated:
		if !slices.Contains(p.Finalizers, blocker) {
			p.Finalizers = append(p.Finalizers, blocker)
		}
	default:
		if p.DeletionTimestamp != nil {
			p.Finalizers = nil
		}
	}
	if !slices.Equal(before.Finalizers, p.Finalizers) {
		// A Pod that changed meanwhile comes again in the next round.
		_ = e.Client.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
}

func TestHooksByFinalizer(t *testing.T) {
	e := newEnv(t)
	e.Make(e.manifest("cloneset-lifecycle.yaml"))
	e.settled("hooked", 3, 3)
	before := uids(e.pods("hooked"))
	h := e.record("hooked")
	e.edit("hooked", image("nginx:mainline"))
	e.Eventually("a Pod waits for its hook", func() error {
		for _, p := range e.pods("hooked") {
			if p.Labels[keys.LifecycleState] == "PreparingUpdate" {
				return nil
			}
		}
		return fmt.Errorf("none does")
	})
	e.Always(time.Second, "no Pod is changed while it is hooked", func() error {
		for _, p := range e.pods("hooked") {
			if p.Spec.Containers[0].Image != "nginx:alpine" {
				return fmt.Errorf("Pod %s is", p.Name)
			}
		}
		return nil
	})
	stop := e.drain("hooked")
	e.settled("hooked", 3, 3)
	if after := uids(e.pods("hooked")); !slices.Equal(before, after) {
		t.Errorf("Pods are %v, were %v", after, before)
	}
	h.read(func(h *history) {
		for name, states := range h.states {
			if got := strings.Join(states, " "); !strings.HasSuffix(got, "PreparingUpdate Updating Updated Normal") {
				t.Errorf("Pod %s went through %s", name, got)
			}
		}
	})
	stop()

	t.Log("scaled in, a Pod waits for its hook; scaled out again, it comes back")
	e.edit("hooked", replicas(2))
	var waiting string
	e.Eventually("a Pod waits in PreparingDelete", func() error {
		for _, p := range e.pods("hooked") {
			if p.Labels[keys.LifecycleState] == "PreparingDelete" {
				waiting = p.Name
				return nil
			}
		}
		return fmt.Errorf("none does")
	})
	e.edit("hooked", image("nginx:1.27"))
	e.Always(time.Second, "a Pod in PreparingDelete is not updated", func() error {
		p := &corev1.Pod{}
		e.Read(waiting, p)
		if state := p.Labels[keys.LifecycleState]; state != "PreparingDelete" || p.Spec.Containers[0].Image != "nginx:mainline" {
			return fmt.Errorf("it is in %s with %s", state, p.Spec.Containers[0].Image)
		}
		return nil
	})
	e.edit("hooked", func(set *v1beta1.CloneSet) { replicas(3)(set); image("nginx:mainline")(set) })
	e.drainUpdatesOnly("hooked")
	e.Eventually("all Pods are in service again", func() error {
		set := e.cloneSet("hooked")
		if set.Status.AvailableReplicas != 3 || set.Status.UpdatedReplicas != 3 {
			return fmt.Errorf("%d are available, %d updated", set.Status.AvailableReplicas, set.Status.UpdatedReplicas)
		}
		return nil
	})
	if after := uids(e.pods("hooked")); !slices.Equal(before, after) {
		t.Errorf("Pods are %v, were %v", after, before)
	}

	t.Log("with its hook released, it is deleted")
	e.drain("hooked")
	e.edit("hooked", replicas(1))
	e.settled("hooked", 1, 1)
}

// drainUpdatesOnly gives Pods back to service that were updated, and lets none go.
func (e *env) drainUpdatesOnly(name string) {
	e.Helper()
	e.Eventually("no Pod waits for its update", func() error {
		for _, p := range e.pods(name) {
			switch state := p.Labels[keys.LifecycleState]; state {
			case "PreparingUpdate", "Updated", "Updating":
				e.handOver(e.Ctx, &p)
				return fmt.Errorf("Pod %s is in %s", p.Name, state)
			}
		}
		return nil
	})
}

func TestStatesOfAWholeLife(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("lives", 0)
	hook := &pub.LifecycleHook{FinalizersHandler: []string{blocker}}
	set.Spec.Lifecycle = &pub.Lifecycle{
		PreNormal:     &pub.LifecycleHook{LabelsHandler: map[string]string{"example.io/warm": "true"}},
		InPlaceUpdate: hook, PreDelete: hook,
	}
	set.Spec.Template.Finalizers = []string{blocker}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("lives", 0, 0)
	h := e.record("lives")
	e.edit("lives", replicas(1))
	e.Eventually("the Pod is ready, and waits for its preNormal hook", func() error {
		pods := e.pods("lives")
		if len(pods) != 1 || !scene.IsReady(&pods[0]) {
			return fmt.Errorf("Pods are %v", names(pods))
		}
		return nil
	})
	name := e.pods("lives")[0].Name
	e.patchPod(name, func(p *corev1.Pod) { p.Labels["example.io/warm"] = "true" })
	e.settled("lives", 1, 1)
	e.drain("lives")
	e.edit("lives", image("nginx:mainline"))
	e.settled("lives", 1, 1)
	e.edit("lives", replicas(0))
	e.settled("lives", 0, 0)
	h.read(func(h *history) {
		want := []string{"PreparingNormal", "Normal", "PreparingUpdate", "Updating", "Updated", "Normal", "PreparingDelete"}
		if got := h.states[name]; !slices.Equal(got, want) {
			t.Errorf("the Pod went through %v, want %v", got, want)
		}
	})
}

func TestHookByTwoLabels(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("labels", 1)
	hook := map[string]string{"example.io/a": "true", "example.io/b": "true"}
	set.Spec.Lifecycle = &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: hook, MarkPodNotReady: true}}
	for key, value := range hook {
		set.Spec.Template.Labels[key] = value
	}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("labels", 1, 1)
	name := e.pods("labels")[0].Name
	state := func(want string) {
		e.Helper()
		e.Eventually("the Pod is in "+want, func() error {
			if got := e.pods("labels")[0].Labels[keys.LifecycleState]; got != want {
				return fmt.Errorf("it is in %s", got)
			}
			return nil
		})
	}
	label := func(key, value string) {
		e.Helper()
		e.patchPod(name, func(p *corev1.Pod) { p.Labels[key] = value })
	}
	e.edit("labels", image("nginx:mainline"))
	state("PreparingUpdate")
	e.Eventually("the Pod is NotReady by its hook", func() error {
		if p := e.pods("labels")[0]; scene.IsReady(&p) {
			return fmt.Errorf("it is ready")
		}
		return nil
	})

	t.Log("rolled back while it waits, it is Normal and Ready again")
	e.edit("labels", image("nginx:alpine"))
	e.settled("labels", 1, 1)
	state("Normal")

	t.Log("one label of two still holds it")
	e.edit("labels", image("nginx:mainline"))
	state("PreparingUpdate")
	label("example.io/a", "false")
	e.Always(time.Second, "one label still holds the Pod", func() error {
		if got := e.pods("labels")[0].Labels[keys.LifecycleState]; got != "PreparingUpdate" {
			return fmt.Errorf("it is in %s", got)
		}
		return nil
	})
	label("example.io/b", "false")
	state("Updated")
	label("example.io/a", "true")
	e.Always(time.Second, "one label of two does not let the Pod back", func() error {
		if got := e.pods("labels")[0].Labels[keys.LifecycleState]; got != "Updated" {
			return fmt.Errorf("it is in %s", got)
		}
		return nil
	})
	label("example.io/b", "true")
	state("Normal")
	e.settled("labels", 1, 1)
}

func TestPreNormalHook(t *testing.T) {
	e := newEnv(t)
	set := e.plain("warming", 2)
	set.Spec.Lifecycle = &pub.Lifecycle{PreNormal: &pub.LifecycleHook{LabelsHandler: map[string]string{"example.io/warm": "true"}}}
	e.Must(e.Client.Create(e.Ctx, set))
	e.Eventually("Pods are ready, but not available", func() error {
		s := e.cloneSet("warming").Status
		if s.ReadyReplicas != 2 || s.AvailableReplicas != 0 {
			return fmt.Errorf("%d are ready, %d available", s.ReadyReplicas, s.AvailableReplicas)
		}
		return nil
	})
	for _, p := range e.pods("warming") {
		e.patchPod(p.Name, func(p *corev1.Pod) { p.Labels["example.io/warm"] = "true" })
	}
	e.settled("warming", 2, 2)
}

func TestExcludePreparingDelete(t *testing.T) {
	e := newEnv(t)
	set := e.plain("replaced", 5)
	set.Spec.ScaleStrategy.ExcludePreparingDelete = true
	set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{FinalizersHandler: []string{blocker}}}
	set.Spec.Template.Finalizers = []string{blocker}
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("replaced", 5, 5)
	victim := e.pods("replaced")[0].Name
	e.patchPod(victim, func(p *corev1.Pod) { p.Labels[keys.SpecifiedDelete] = "true" })
	e.Eventually("a sixth Pod is there while the first one waits", func() error {
		pods := e.pods("replaced")
		if len(pods) != 6 || !slices.Contains(names(pods), victim) {
			return fmt.Errorf("Pods are %v", names(pods))
		}
		return nil
	})
	e.patchPod(victim, func(p *corev1.Pod) { p.Finalizers = nil })
	e.Eventually("the first one is gone", func() error {
		if pods := names(e.pods("replaced")); len(pods) != 5 || slices.Contains(pods, victim) {
			return fmt.Errorf("Pods are %v", pods)
		}
		return nil
	})
	e.drain("replaced") // so that the namespace can end
}
