package daemonset

import (
	"testing"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
)

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*State)
		want    string
	}{
		"it forgets the budget": {func(v *State) {
			v.limits.MaxUnavailable = 100
		}, invariant.RuleUnavailable},
		"it forgets how much it may surge": {func(v *State) {
			if v.surges() {
				v.limits.MaxSurge = 100
			}
		}, invariant.RuleSurge},
		"it forgets the partition": {func(v *State) {
			v.limits.Partition = 0
			for _, n := range nodeupdate.Reach(v.nodes(), v.limits) {
				v.inReach[n.Name] = true
			}
		}, invariant.RuleReach},
		"it forgets the taints": {func(v *State) {
			for _, p := range v.nodeStates {
				if p.node != nil {
					p.verdict.Run = true
				}
			}
		}, invariant.RuleNode},
		"it forgets the hooks": {func(v *State) {
			v.workload.Lifecycle = nil
		}, invariant.RuleHook},
		"it does not wait for the old Pod to be gone": {func(v *State) {
			for _, p := range v.nodeStates {
				if len(p.members) > 0 && p.members[0].Leaving {
					p.members = p.members[1:]
				}
			}
		}, invariant.RuleOneANode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(func(v State) plan.Plan {
				tc.mistake(&v)
				return Plan(v)
			}).Break(t, tc.want)
		})
	}
}
