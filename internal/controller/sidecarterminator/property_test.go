package sidecarterminator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/terminate"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleWork    = "nothing is stopped before the work is done"
	ruleMain    = "only sidecars are stopped"
	ruleOutcome = "a Pod ends as its main containers have"
	ruleCounts  = "a sidecar whose exit code counts is stopped before the Pod is ended"
	ruleTries   = "a Pod has so many requests at most"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which Pods went on for ever, because the cache had them before their node.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 274, 294) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		suite promises.Suite
		want  string
	}{
		"it takes work for done that goes on": {suite(func(s Snapshot) plan.Plan { return Plan(early(s)) }), ruleWork},
		"it stops a main container, too": {suite(promises.Misplan(Plan, func(a *plan.Action) {
			if r, is := a.After.(*v1beta1.ContainerRecreateRequest); is {
				r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: "main"})
			}
		})), ruleMain},
		"it takes every end for a failure": {suite(promises.Misplan(Plan, func(a *plan.Action) {
			if p, is := a.After.(*corev1.Pod); is && a.Verb == plan.UpdateStatus {
				p.Status.Phase = corev1.PodFailed
			}
		})), ruleOutcome},
		"it forgets the requests that it has made": {suite(func(s Snapshot) plan.Plan {
			s.Requests = nil
			return Plan(s)
		}), "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.suite.Break(t, tc.want)
		})
	}
}

// early returns a snapshot in which all main containers that run have ended.
func early(s Snapshot) Snapshot {
	s.Pod = s.Pod.DeepCopy()
	for i := range s.Pod.Status.ContainerStatuses {
		if c := &s.Pod.Status.ContainerStatuses[i]; isMain(c.Name) && c.State.Running != nil {
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}
	}
	return s
}

// suite is the controller, with a planner that may be mistaken, in clusters with Pods that do their work and end, and a daemon.
func suite(planned func(Snapshot) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&corev1.Pod{}, &corev1.Node{}, &v1beta1.ContainerRecreateRequest{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := newScenario(w)
			same := func(v Snapshot) Snapshot { return v }
			planner := promises.Planner[Snapshot, Snapshot]{Plan: planned, Take: same, Snapshot: same}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind()
					k.Plan = planner.In(w)
					return promises.Start(k, c.Runtime(), c)
				},
				Act: s.act, Relent: s.relent, Others: []func() bool{s.work, s.daemon, s.kubelets}, Check: check, Converged: s.converged,
			}
		},
	}
}

func isMain(container string) bool { return strings.HasPrefix(container, "main") }

// check returns the promises that were broken in a history.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	pods, requests := map[types.UID]*corev1.Pod{}, map[types.UID]int{}
	for _, c := range history {
		broken := func(rule string) {
			out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: c.Key.Name})
		}
		switch after := c.After.(type) {
		case *v1beta1.ContainerRecreateRequest:
			if c.Before != nil || c.Pass == nil {
				continue
			}
			of := after.OwnerReferences[0].UID
			if done, _ := terminate.IsDone(pods[of]); !done {
				broken(ruleWork)
			}
			for _, container := range after.Spec.Containers {
				if isMain(container.Name) {
					broken(ruleMain)
				}
			}
			requests[of]++
			if requests[of] > mostRequests {
				broken(ruleTries)
			}
		case *corev1.Pod:
			pods[after.UID] = after
			before, existed := c.Before.(*corev1.Pod)
			if c.Pass == nil || !existed || before.Status.Phase == after.Status.Phase && !isReplaced(before, after) {
				continue
			}
			done, well := terminate.IsDone(before)
			switch {
			case !done:
				broken(ruleWork)
			case before.Status.Phase == after.Status.Phase:
			case well != (after.Status.Phase == corev1.PodSucceeded):
				broken(ruleOutcome)
			case len(terminate.Left(before).Stopped) > 0:
				broken(ruleCounts)
			}
		}
	}
	return out
}

// isReplaced reports whether a container was given another image.
func isReplaced(before, after *corev1.Pod) bool {
	for i := range after.Spec.Containers {
		if before.Spec.Containers[i].Image != after.Spec.Containers[i].Image {
			return true
		}
	}
	return false
}
