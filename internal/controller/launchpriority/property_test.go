package launchpriority

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleOrder   = "containers start in order"
	ruleKeys    = "a key is never taken away"
	ruleForeign = "a ConfigMap of somebody else stays as it is"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a controller began to lead with a cache that was older than what the one before it had done.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 16469) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	opensAll := func(a *plan.Action) {
		if barrier, is := a.After.(*corev1.ConfigMap); is && a.Verb == plan.Create {
			barrier.Data = map[string]string{launch.Key(0): "true", launch.Key(1): "true", launch.Key(2): "true"}
			barrier.Annotations[keys.ContainerLaunchPriorityCurrent] = launch.Key(0)
		}
	}
	deaf := suite(Plan)
	deaf.Mistake = promises.Mistake{IsDeaf: func(e simulate.Event) bool { _, is := e.New.(*corev1.ConfigMap); return is }}
	for name, tc := range map[string]struct {
		suite promises.Suite
		want  string
	}{
		"it opens all keys at once": {suite(promises.Misplan(Plan, opensAll)), ruleOrder},
		"it takes the key before away": {suite(promises.Misplan(Plan, func(a *plan.Action) {
			if barrier, is := a.After.(*corev1.ConfigMap); is && a.Verb == plan.Update {
				delete(barrier.Data, launch.Key(2))
			}
		})), ruleKeys},
		"it takes any ConfigMap for a barrier of an earlier Pod": {suite(func(s Snapshot) plan.Plan {
			if s.Barrier != nil && launch.OwnershipOf(s.Barrier, s.Pod) == launch.Foreign {
				s.Barrier = s.Barrier.DeepCopy()
				s.Barrier.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: s.Pod.Name, UID: "earlier"}}
			}
			return Plan(s)
		}), ruleForeign},
		"it does not hear of barriers": {deaf, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.suite.Break(t, tc.want)
		})
	}
}

// suite is the controller, with a planner that may be mistaken, in clusters with Pods whose containers wait for each other.
func suite(planned func(Snapshot) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&corev1.Pod{}, &corev1.ConfigMap{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{promises.User{Cluster: w.Cluster, Rand: w.Rand}}
			w.Rig.Kubelet.IsHeld = s.isHeld
			for range 3 {
				s.addPod()
			}
			same := func(v Snapshot) Snapshot { return v }
			planner := promises.Planner[Snapshot, Snapshot]{Plan: planned, Take: same, Snapshot: same}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind()
					k.Plan = planner.In(w)
					return promises.Start(k, c.Runtime(), c)
				},
				Act: s.act, Relent: s.relent, Check: check, Converged: s.converged,
			}
		},
	}
}

// check returns the promises that were broken in a history.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	pods := map[string]*corev1.Pod{}
	started := map[types.UID]map[string]bool{}
	// misled are Pods beside which there was a barrier of another one: their containers may have taken its keys.
	misled := map[types.UID]bool{}
	barriers := map[string]*corev1.ConfigMap{}
	mislead := func(p *corev1.Pod, barrier *corev1.ConfigMap) {
		if p != nil && barrier != nil && launch.OwnershipOf(barrier, p) != launch.Owned {
			misled[p.UID] = true
		}
	}
	for _, c := range history {
		broken := func(rule string) {
			out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: c.Key.Name})
		}
		if c.Key.Kind.Kind == "Pod" {
			after, _ := c.After.(*corev1.Pod)
			pods[c.Key.Name] = after
			if after == nil {
				continue
			}
			mislead(after, barriers[barrierOf(after)])
			if started[after.UID] == nil {
				started[after.UID] = map[string]bool{}
			}
			if !note(after, started[after.UID]) && !misled[after.UID] {
				broken(ruleOrder)
			}
			continue
		}
		before, _ := c.Before.(*corev1.ConfigMap)
		after, _ := c.After.(*corev1.ConfigMap)
		barriers[c.Key.Name] = after
		for _, p := range pods {
			if barrierOf(p) == c.Key.Name {
				mislead(p, after)
			}
		}
		if c.Pass == nil || before == nil {
			continue
		}
		if len(before.OwnerReferences) == 0 {
			broken(ruleForeign)
		}
		for key := range before.Data {
			if after != nil && after.Data[key] == "" {
				broken(ruleKeys)
			}
		}
	}
	return out
}

// note notes which containers of a Pod are ready, and reports whether each had its turn: those before it were ready before.
func note(p *corev1.Pod, started map[string]bool) bool {
	inOrder := true
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if status := pod.ContainerStatus(p, c.Name); status == nil || !status.Ready || started[c.Name] {
			continue
		}
		own, _ := launch.Priority(c)
		for j := range p.Spec.Containers {
			other := &p.Spec.Containers[j]
			if higher, _ := launch.Priority(other); higher > own && !started[other.Name] {
				inOrder = false
			}
		}
	}
	for _, status := range p.Status.ContainerStatuses {
		started[status.Name] = started[status.Name] || status.Ready
	}
	return inOrder
}

func barrierOf(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	name, err := launch.BarrierName(p.Name)
	if err != nil {
		panic(err)
	}
	return name
}

// scenario is users with Pods, and somebody who meddles with ConfigMaps.
type scenario struct{ promises.User }

func (s *scenario) addPod() {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", s.Rand.Intn(4))}}
	var priorities []int32
	for i := range 2 + s.Rand.Intn(3) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: s.Image()})
		priorities = append(priorities, int32(s.Rand.Intn(3)))
	}
	launch.SetBarrier(p, barrierOf(p), priorities)
	s.create(p)
}

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // the name may be taken
}

func (s *scenario) barrier(name string) *corev1.ConfigMap {
	barrier, _ := s.Cluster.Get(simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "default", Name: name}).(*corev1.ConfigMap)
	return barrier
}

// isHeld reports whether a container waits for a key.
func (s *scenario) isHeld(_ *corev1.Pod, c *corev1.Container) bool {
	for _, env := range c.Env {
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			barrier := s.barrier(ref.Name)
			return barrier == nil || barrier.Data[ref.Key] == ""
		}
	}
	return false
}

// act is what users do.
func (s *scenario) act() {
	pods := s.Pods()
	if len(pods) == 0 || s.Chance(35) {
		s.addPod()
		return
	}
	p := pods[s.Rand.Intn(len(pods))]
	barrier := s.barrier(barrierOf(p))
	switch {
	case s.Chance(40):
		s.Cluster.Delete(promises.UserActor, p)
	case barrier != nil && s.Chance(50):
		s.Cluster.Delete(promises.UserActor, barrier)
	case barrier == nil:
		s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: barrierOf(p)}, Data: map[string]string{"own": "data"}})
	default:
		s.Meddle(p)
	}
}

// relent removes what keeps Pods from starting.
func (s *scenario) relent() {
	for _, object := range s.Cluster.Of(corev1.SchemeGroupVersion.WithKind("ConfigMap")) {
		if len(object.GetOwnerReferences()) == 0 {
			s.Cluster.Delete(promises.UserActor, object)
		}
	}
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *scenario) converged() (problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	named := map[string]bool{}
	for _, p := range s.Pods() {
		named[barrierOf(p)] = true
		if !pod.IsActive(p) {
			continue
		}
		barrier := s.barrier(barrierOf(p))
		switch {
		case barrier == nil || launch.OwnershipOf(barrier, p) != launch.Owned:
			wrong("%s has no barrier", p.Name)
		case barrier.Immutable == nil || !*barrier.Immutable || barrier.Labels[keys.ContainerLaunchBarrier] == "":
			wrong("the barrier of %s is not complete: %+v", p.Name, barrier)
		case !isCompleted(p):
			wrong("%s is not marked as completed", p.Name)
		}
		for _, c := range p.Status.ContainerStatuses {
			if !c.Ready {
				wrong("container %s of %s has not started", c.Name, p.Name)
			}
		}
	}
	for _, object := range s.Cluster.Of(corev1.SchemeGroupVersion.WithKind("ConfigMap")) {
		if !named[object.GetName()] {
			wrong("%s is left of a Pod that is gone", object.GetName())
		}
	}
	return problems
}
