package containerrecreate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a promise was broken:
// a Pod was replaced or seen late, and a request went while its Pod was being taken out of service.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 440, 2842, 4340, 6931) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	reorder := func(mistake func(plan.Chain) plan.Chain) func(Snapshot) plan.Plan {
		return func(v Snapshot) plan.Plan {
			p := Plan(v)
			for i, stage := range p.Stages {
				for j := range stage {
					stage[j] = mistake(slices.Clone(stage[j]))
				}
				p.Stages[i] = slices.DeleteFunc(stage, func(c plan.Chain) bool { return len(c) == 0 })
			}
			return p
		}
	}
	isPod := func(a plan.Action) bool { _, is := a.Object().(*corev1.Pod); return is }
	for name, tc := range map[string]struct {
		planned func(Snapshot) plan.Plan
		want    string
	}{
		"it says that the Pod is out of service, which is not": {
			reorder(func(c plan.Chain) plan.Chain { return slices.DeleteFunc(c, isPod) }), invariant.RuleHeldDuringGrace,
		},
		"it does not bring the Pod back": {
			func(v Snapshot) plan.Plan {
				if v.Request.Status.CompletionTime != nil {
					return reorder(func(c plan.Chain) plan.Chain { return slices.DeleteFunc(c, isPod) })(v)
				}
				return Plan(v)
			}, "is kept out of service",
		},
		"it is impatient": {
			func(v Snapshot) plan.Plan { v.Now = v.Now.Add(30 * time.Second); return Plan(v) }, invariant.RuleEndedWithReason,
		},
		"it takes every Pod for gone": {
			func(v Snapshot) plan.Plan {
				if v.Request.Status.Phase == v1beta1.ContainerRecreateRequestRecreating {
					v.Pod = nil
				}
				return Plan(v)
			}, invariant.RuleEndedWithReason,
		},
		"it tells nothing of the new containers": {
			func(v Snapshot) plan.Plan {
				v.Request = v.Request.DeepCopy()
				p := Plan(v)
				for _, a := range p.Actions() {
					if r, is := a.After.(*v1beta1.ContainerRecreateRequest); is {
						r.Status.ContainerStatusSnapshot = nil
					}
				}
				return p
			}, "tells nothing of its new containers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(tc.planned).Break(t, tc.want)
		})
	}
}

// suite is the controller, with a planner that may be mistaken, in clusters with some Pods, requests for them, and a daemon.
func suite(planned func(Snapshot) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&v1beta1.ContainerRecreateRequest{}, &corev1.Pod{}},
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
				Act: s.act, Relent: func() {}, Others: []func() bool{s.daemon}, Check: invariant.CheckContainerRecreate,
				Converged: s.converged,
			}
		},
	}
}

// converged returns what is left undone when the cluster is at rest.
func (s *scenario) converged() []string {
	var out []string
	open := map[string]bool{}
	for _, r := range s.requests() {
		if r.Status.CompletionTime == nil {
			open[r.Namespace+"/"+r.Name] = true
			if s.isCutOff(r) {
				continue
			}
			out = append(out, fmt.Sprintf("request %s has not ended: %+v", r.Name, r.Status))
			continue
		}
		out = append(out, invariant.ContainerRecreateConverged(s.Cluster, r)...)
	}
	for _, p := range s.Pods() {
		for _, mark := range invariant.HeldBy(p) {
			if !open[mark] {
				out = append(out, fmt.Sprintf("Pod %s is kept out of service for %s", p.Name, mark))
			}
		}
	}
	return out
}
