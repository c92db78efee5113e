package apply

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// counted returns the sum of all series of a metric.
func counted(t *testing.T, c prometheus.Collector) (sum float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			sum += metric.GetCounter().GetValue()
		}
	}
	return sum
}

// TestUpdatesOfPodsAreCounted once they have begun, and those that could not go in place by the field that stands against it.
func TestUpdatesOfPodsAreCounted(t *testing.T) {
	cases := map[string]struct {
		action             plan.Action
		err                error
		updates, fallbacks float64
	}{
		"an update in place":                {action: plan.Action{Method: plan.InPlace}, updates: 1},
		"a recreation that was wanted":      {action: plan.Action{Method: plan.Recreate}, updates: 1},
		"a recreation in place of the same": {action: plan.Action{Method: plan.Recreate, NotInPlace: "containers.env"}, updates: 1, fallbacks: 1},
		"another write":                     {},
		"an update that has failed":         {action: plan.Action{Method: plan.InPlace}, err: errors.New("quota")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			updates, others := counted(t, podUpdates), counted(t, fallbacks)
			b := newBench(t)
			b.before = func(string) error { return tc.err }
			tc.action.Verb, tc.action.After = plan.Create, b.pod("a")
			b.run(t, plan.Stage{{tc.action}})
			if got := counted(t, podUpdates) - updates; got != tc.updates {
				t.Errorf("%v updates were counted, want %v", got, tc.updates)
			}
			if got := counted(t, fallbacks) - others; got != tc.fallbacks {
				t.Errorf("%v fallbacks were counted, want %v", got, tc.fallbacks)
			}
		})
	}
}
