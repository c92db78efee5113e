package daemonset

import (
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/test/invariant"
)

// TestMistakesShow has the planner make mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	scheme := testScheme(t)
	for name, tc := range map[string]struct {
		mistake func(*Survey) bool
		want    string
	}{
		"it forgets the budget": {func(v *Survey) bool {
			v.limits.MaxUnavailable = 100
			return true
		}, invariant.RuleUnavailable},
		"it forgets how much it may surge": {func(v *Survey) bool {
			if v.surges() {
				v.limits.MaxSurge = 100
			}
			return v.surges()
		}, invariant.RuleSurge},
		"it forgets the partition": {func(v *Survey) bool {
			v.limits.Partition = 0
			for _, n := range nodeupdate.Kept(v.nodes(), v.limits) {
				v.kept[n.Name] = true
			}
			return true
		}, invariant.RuleReach},
		"it forgets the taints": {func(v *Survey) bool {
			for _, p := range v.places {
				if p.node != nil {
					p.verdict.Run = true
				}
			}
			return true
		}, invariant.RuleNode},
		"it forgets the hooks": {func(v *Survey) bool {
			v.Set = v.Set.DeepCopy()
			had := v.Set.Spec.Lifecycle != nil
			v.Set.Spec.Lifecycle = nil
			return had
		}, invariant.RuleHook},
		"it does not wait for the old Pod to be gone": {func(v *Survey) bool {
			forgot := false
			for _, p := range v.places {
				if len(p.members) > 0 && p.members[0].leaving {
					p.members, forgot = p.members[1:], true
				}
			}
			return forgot
		}, invariant.RuleOneANode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			for seed := range int64(300) {
				w := newWorld(scheme, seed)
				w.mistake = tc.mistake
				problems := w.run(t.Context())
				made += w.made
				if strings.Contains(strings.Join(problems, "\n"), tc.want) {
					return
				}
			}
			t.Errorf("the mistake was made %d times and broke no promise: %s", made, tc.want)
		})
	}
}
