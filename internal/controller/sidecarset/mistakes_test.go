package sidecarset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*State)
		want    string
	}{
		"it forgets the budget": {func(v *State) {
			v.decision.Update = append(v.decision.Update, v.decision.OverBudget...)
		}, invariant.RuleUnavailable},
		"it forgets the partition": {func(v *State) {
			v.decision.Update = append(v.decision.Update, v.decision.Kept...)
		}, invariant.RuleOldSidecars},
		"it forgets the pause": {func(v *State) {
			v.Set = v.Set.DeepCopy()
			v.Set.Spec.UpdateStrategy.Paused = false
		}, invariant.RuleResting},
		"it forgets which Pods are selected": {func(v *State) {
			for i := range v.matched {
				if s := &v.matched[i]; !s.Selected && !s.Updated && s.Upgradable {
					v.decision.Update = append(v.decision.Update, s)
				}
			}
		}, invariant.RuleResting},
		"it leaves hot upgrades unfinished": {func(v *State) {
			for i := range v.matched {
				v.matched[i].Resets = nil
			}
		}, "is not in service"},
		"it forgets to say what can't be updated": {func(v *State) {
			v.decision.NotUpgradable = nil
		}, "can't be updated, and says"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(func(v State) plan.Plan {
				v.matched = append([]sidecar.PodStatus{}, v.matched...)
				tc.mistake(&v)
				return Plan(v)
			}).Break(t, tc.want)
		})
	}
}

// TestMistakesInWritesShow has the planner decide right and write something else.
func TestMistakesInWritesShow(t *testing.T) {
	write := func(wrong func(*corev1.Pod)) func(State) plan.Plan {
		return promises.Misplan(Plan, func(a *plan.Action) {
			if p, isPod := a.After.(*corev1.Pod); isPod && a.Concern == plan.Rollout {
				wrong(p)
			}
		})
	}
	for name, tc := range map[string]struct {
		planned func(State) plan.Plan
		want    string
	}{
		"the Pod's own container gets an image, too": {write(func(p *corev1.Pod) {
			pod.Container(p, "app").Image = "app:v9"
		}), invariant.RuleSidecarsOnly},
		"the Pod gets a label": {write(func(p *corev1.Pod) {
			p.Labels["written"] = "yes"
		}), invariant.RuleSidecarsOnly},
		"notes of other SidecarSets are lost": {write(func(p *corev1.Pod) {
			for _, name := range []string{firstSet, secondSet} {
				if records, err := sidecar.RecordsIn(p, keys.SidecarSetHash); err == nil && records[name].Hash != "" {
					sidecar.SetRecord(p, keys.SidecarSetHash, sidecar.Record{SidecarSetName: name})
				}
			}
		}), invariant.RuleSidecarsOnly},
		"both containers of a hot upgrade restart": {write(func(p *corev1.Pod) {
			for _, twin := range []string{"envoy-1", "envoy-2"} {
				if c := pod.Container(p, twin); c != nil {
					c.Image = "app:v1"
				}
			}
		}), invariant.RuleTakeover},
		"an init container that runs beside the others is left out": {write(func(p *corev1.Pod) {
			if c := pod.Lasting(p, "native"); c != nil {
				c.Image = "app:v0"
			}
		}), "container native"},
		"it writes although nothing is new": {func(v State) plan.Plan {
			p := Plan(v)
			if len(v.matched) > 0 && p.Empty() {
				before := v.matched[0].Pod
				after := before.DeepCopy()
				pod.SetCondition(after, corev1.PodCondition{Type: sidecar.Upgradable, Status: corev1.ConditionTrue, Message: v.Now.String()}, v.Now)
				p.Stages = []plan.Stage{{{{Verb: plan.UpdateStatus, Concern: plan.Tidy, Before: before, After: after}}}}
			}
			return p
		}, "does not come to rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(tc.planned).Break(t, tc.want)
		})
	}
}

// TestMistakesAroundShow has what surrounds the planner make mistakes.
func TestMistakesAroundShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake promises.Mistake
		want    string
	}{
		"it trusts an old cache":                   {promises.Mistake{TrustsCache: true}, invariant.RuleUnavailable},
		"it writes whatever has become of the Pod": {promises.Mistake{Unconditional: true}, "at rest"},
		"it does not listen to Pods":               {promises.Mistake{IsDeaf: func(e simulate.Event) bool { _, isPod := e.New.(*corev1.Pod); return isPod }}, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suite(Plan)
			s.Mistake = tc.mistake
			s.Break(t, tc.want)
		})
	}
}
