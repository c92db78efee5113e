package daemonset

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// TestBurstLimitsOnePass counts the writes of one pass over ten nodes, each kind of which has a limit of its own.
func TestBurstLimitsOnePass(t *testing.T) {
	for name, tc := range map[string]struct {
		burst    intstr.IntOrString
		strategy string
		empty    bool
		verb     plan.Verb
		want     int
	}{
		"creations":                           {burst: intstr.FromInt32(3), strategy: "{}", empty: true, verb: plan.Create, want: 3},
		"deletions":                           {burst: intstr.FromInt32(3), strategy: "{maxUnavailable: 10}", verb: plan.Delete, want: 3},
		"a percentage of few nodes is 1":      {burst: intstr.FromString("1%"), strategy: "{}", empty: true, verb: plan.Create, want: 1},
		"a percentage is rounded down":        {burst: intstr.FromString("29%"), strategy: "{}", empty: true, verb: plan.Create, want: 2},
		"of the limit, the budget takes less": {burst: intstr.FromInt32(3), strategy: "{maxUnavailable: 2}", verb: plan.Delete, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleet(t, 10, tc.strategy)
			s.Set.Spec.BurstReplicas = &tc.burst
			if tc.empty {
				s.Pods = nil
			}
			got := 0
			for _, a := range Plan(Classify(s)).Actions() {
				if a.Verb == tc.verb && a.Object().GetName() != Classify(s).workload.History.Update.Name {
					got++
				}
			}
			if got != tc.want {
				t.Errorf("one pass plans %d, want %d:\n%s", got, tc.want, Plan(Classify(s)))
			}
		})
	}
}
