package statefulset

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
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

// mistakes are bugs, each with what must come to light.
func mistakes() map[string]struct {
	planned func(State) plan.Plan
	breaks  string
} {
	return map[string]struct {
		planned func(State) plan.Plan
		breaks  string
	}{
		"one more Pod than maxUnavailable is updated": {misread(func(v *State) { v.limits.maxUnavailable++ }), invariant.RuleUnavailable},
		"a slot without a Pod does not count": {misread(func(v *State) {
			for _, s := range v.slots {
				if s.down && s.member == nil {
					s.down = false
					v.down--
				}
			}
		}), invariant.RuleUnavailable},
		"one Pod of the partition is updated": {misread(func(v *State) {
			order := v.order()
			order.Partition = max(order.Partition-1, 0)
			v.reach, v.problem = ordinal.Reach(v.asSlots(updatedOf), order)
		}), invariant.RulePartition},
		"an ordered set is created in parallel": {misread(func(v *State) {
			v.Set = v.Set.DeepCopy()
			v.Set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		}), invariant.RuleOrder},
		"a pause is overlooked":          {misread(func(v *State) { v.workload.Paused = false }), invariant.RulePaused},
		"a preDelete hook is overlooked": {misread(func(v *State) { v.workload.Lifecycle = nil }), invariant.RuleHook},
		"an ordinal too many is filled": {misread(func(v *State) {
			if n := len(v.slots); n > 0 {
				last := v.slots[n-1].ordinal + 1
				v.slots = append(v.slots, &slot{position: n, ordinal: last, name: ordinal.PodName(v.Set.Name, last)})
			}
		}), invariant.RuleOrdinal},
		"claims are deleted along with their Pods": {func(v State) plan.Plan {
			p := Plan(v)
			for i, stage := range p.Stages {
				for _, chain := range stage {
					if deleted, ok := chain[len(chain)-1].Before.(*corev1.Pod); ok && chain[len(chain)-1].Verb == plan.Delete {
						for _, c := range v.Claims {
							if strings.HasSuffix(c.Name, "-"+deleted.Name) && c.DeletionTimestamp == nil {
								p.Stages[i] = append(p.Stages[i], plan.Chain{{Verb: plan.Delete, Before: c}})
							}
						}
					}
				}
			}
			return p
		}, invariant.RuleKeep},
		"what is broken is never replaced": {misread(func(v *State) {
			for _, s := range v.slots {
				if s.member != nil && !s.member.Ready {
					s.inReach = false
				}
			}
			v.reach = nil
		}), "at rest"},
	}
}

// TestMistakesComeToLight checks that the test of the promises would notice if one was broken.
func TestMistakesComeToLight(t *testing.T) {
	for name, tc := range mistakes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(tc.planned).Break(t, tc.breaks)
		})
	}
}
