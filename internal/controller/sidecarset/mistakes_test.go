package sidecarset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
	"github.com/seed-69ecc383/kruise/internal/simulate"
	"github.com/seed-69ecc383/kruise/test/invariant"
	"github.com/seed-69ecc383/kruise/test/promises"
)

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*Survey)
		want    string
	}{
		"it forgets the budget": {func(v *Survey) {
			v.decision.Update = append(v.decision.Update, v.decision.OverBudget...)
		}, invariant.RuleUnavailable},
		"it forgets the partition": {func(v *Survey) {
			v.decision.Update = append(v.decision.Update, v.decision.Kept...)
		}, invariant.RuleOldSidecars},
		"it forgets the pause": {func(v *Survey) {
			v.Set = v.Set.DeepCopy()
			v.Set.Spec.UpdateStrategy.Paused = false
		}, invariant.RuleResting},
		"it leaves hot upgrades unfinished": {func(v *Survey) {
			for i := range v.matched {
				v.matched[i].Resets = nil
			}
		}, "is not in service"},
		"it forgets to say what can't be updated": {func(v *Survey) {
			v.decision.NotUpgradable = nil
		}, "can't be updated, and says"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(func(v Survey) plan.Plan {
				v.matched = append([]sidecar.Standing{}, v.matched...)
				tc.mistake(&v)
				return Plan(v)
			}).Break(t, tc.want)
		})
	}
}

// TestMistakesAroundShow has what surrounds the planner make mistakes.
func TestMistakesAroundShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake promises.Mistake
		want    string
	}{
		"it trusts an old cache":     {promises.Mistake{TrustsCache: true}, invariant.RuleUnavailable},
		"it does not listen to Pods": {promises.Mistake{IsDeaf: func(e simulate.Event) bool { _, isPod := e.New.(*corev1.Pod); return isPod }}, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suite(Plan)
			s.Mistake = tc.mistake
			s.Break(t, tc.want)
		})
	}
}
