package cloneset

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// misread returns a Plan of a survey with something wrong in it.
func misread(wrong func(*State)) func(State) plan.Plan {
	return func(v State) plan.Plan {
		if v.problem == nil {
			wrong(&v)
		}
		return Plan(v)
	}
}

// TestMistakesAreCaught puts bugs into the controller and expects each to break the promise that it should: a check that lets them pass
// proves nothing.
func TestMistakesAreCaught(t *testing.T) {
	cases := map[string]struct {
		planned func(State) plan.Plan
		mistake promises.Mistake
		want    string
	}{
		"one more Pod unavailable than allowed": {
			planned: misread(func(v *State) { v.limits.MaxUnavailable++ }), want: invariant.RuleUnavailable,
		},
		"one more Pod than allowed": {
			planned: misread(func(v *State) { v.limits.Replicas++ }), want: invariant.RuleTotal,
		},
		"one more Pod updated than the partition leaves": {
			planned: misread(func(v *State) { v.limits.Partition = max(v.limits.Partition-1, 0) }), want: invariant.RulePartition,
		},
		"a recheck all the time": {
			planned: func(v State) plan.Plan {
				p := Plan(v)
				p.Recheck, p.RecheckWhy = 100*time.Millisecond, "who knows"
				return p
			},
			want: "although nothing changed",
		},
		"a pause overlooked": {
			planned: misread(func(v *State) { v.workload.Paused = false }), want: invariant.RulePaused,
		},
		"a grace period overlooked": {
			planned: misread(func(v *State) { v.strategy.InPlaceUpdateStrategy = nil }), want: invariant.RuleGrace,
		},
		"hooks overlooked": {
			planned: misread(func(v *State) { v.workload.Lifecycle = nil }), want: invariant.RuleHook,
		},
		"InPlaceOnly overlooked": {
			planned: misread(func(v *State) { v.strategy.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdatePolicyType }), want: invariant.RuleInPlaceOnly,
		},
		"claims deleted that are in use": {
			planned: func(v State) plan.Plan {
				p := Plan(v)
				for _, c := range v.Claims {
					p.Stages = append(p.Stages, plan.Stage{{{Verb: plan.Delete, Concern: plan.Tidy, Before: c}}})
				}
				return p
			}, want: invariant.RuleClaims,
		},
		"an update believed to be over as soon as it is written": {
			planned: func(v State) plan.Plan {
				p := Plan(v)
				for _, m := range v.members {
					if m.State == pub.LifecycleStateUpdating && !inplace.Pending(m.Pod) {
						after := m.Pod.DeepCopy()
						after.Labels[keys.LifecycleState] = string(pub.LifecycleStateNormal)
						p.Stages = append(p.Stages, plan.Stage{{{Verb: plan.Update, Concern: plan.Settle, Before: m.Pod, After: after}}})
					}
				}
				return p
			}, want: invariant.RuleService,
		},
		"a cache believed that is older than our own writes": {
			mistake: promises.Mistake{TrustsCache: true, Unconditional: true}, want: invariant.RuleUnavailable,
		},
		"a cache believed that is older than what the one before it has done": {
			mistake: promises.Mistake{TrustsPast: true}, want: invariant.RuleTotal,
		},
		"a claim deleted because such a cache lacks its Pod": {
			mistake: promises.Mistake{TrustsPast: true}, want: invariant.RuleClaims,
		},
		"names of new Pods that differ each time": {
			planned: func() func(State) plan.Plan {
				r := rand.New(rand.NewSource(1))
				return promises.Misplan(Plan, func(a *plan.Action) {
					if p, ok := a.After.(*corev1.Pod); ok && a.Verb == plan.Create {
						p.Name += string(rune('a' + r.Intn(26)))
						p.Labels[keys.InstanceID] = p.Name[len("web-"):]
					}
				})
			}(), mistake: promises.Mistake{TrustsCache: true}, want: invariant.RuleTotal,
		},
		"a time that nobody is woken at": {
			planned: func(v State) plan.Plan {
				p := Plan(v)
				p.Recheck = 0
				return p
			}, want: "at rest",
		},
		"an event that nobody listens to": {
			mistake: promises.Mistake{IsDeaf: func(e simulate.Event) bool { return e.Key.Kind.Kind == "Pod" }}, want: "at rest",
		},
		"a write for nothing": {
			planned: func(v State) plan.Plan {
				p := Plan(v)
				for _, m := range v.members {
					after := m.Pod.DeepCopy()
					after.Labels["seen"] = v.Now.Format("150405")
					p.Stages = append(p.Stages, plan.Stage{{{Verb: plan.Update, Concern: plan.Tidy, Before: m.Pod, After: after}}})
				}
				return p
			}, want: "a restart makes the controller write",
		},
		"an object of the cache changed": {
			planned: misread(func(v *State) {
				for _, m := range v.members {
					m.Pod.Labels["planned"] = v.Now.Format(time.RFC3339)
				}
			}), want: "planning changes what was read",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planned := tc.planned
			if planned == nil {
				planned = Plan
			}
			mistaken := suite(planned)
			mistaken.Mistake = tc.mistake
			mistaken.Break(t, tc.want)
		})
	}
}

// TestACrashShowsWhatIsOnlyInMemory has each run of the controller finish only the updates that it began itself.
func TestACrashShowsWhatIsOnlyInMemory(t *testing.T) {
	forgetful := suite(Plan)
	populate := forgetful.Populate
	forgetful.Populate = func(w *promises.World) promises.Scenario {
		scenario := populate(w)
		scenario.Start = func(c promises.Connection) simulate.Process {
			begun := map[types.UID]bool{}
			return start(c, Options{}, func(v State) plan.Plan {
				p := Plan(v)
				for i, stage := range p.Stages {
					p.Stages[i] = slices.DeleteFunc(stage, func(chain plan.Chain) bool {
						object := chain[0].Object()
						begun[object.GetUID()] = begun[object.GetUID()] || chain[0].Concern == plan.Rollout
						endsUpdate := object.GetLabels()[keys.LifecycleState] == string(pub.LifecycleStateNormal) &&
							object.GetAnnotations()[keys.InPlaceUpdateState] != ""
						return chain[0].Concern == plan.Settle && endsUpdate && !begun[object.GetUID()]
					})
				}
				return p
			})
		}
		return scenario
	}
	forgetful.BreakByCrash(t, "at rest")
}
