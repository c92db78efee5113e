package process

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/internal/statemetrics"
)

// StateMetrics says whether the manager that leads serves metrics of the state of each object, and of how many.
type StateMetrics struct {
	Enabled bool
	Limit   int
}

// Bind declares the flags.
func (o *StateMetrics) Bind(fs *flag.FlagSet) {
	fs.BoolVar(&o.Enabled, "state-metrics", false,
		"have the manager that leads serve metrics of the state of each workload, see docs/metrics.md")
	fs.IntVar(&o.Limit, "state-metrics-limit", statemetrics.DefaultLimit, "how many objects have state metrics; each has up to 25 series")
}

// Validate returns an error for a limit that there can't be.
func (o *StateMetrics) Validate() error {
	if o.Limit < 1 {
		return fmt.Errorf("--state-metrics-limit is %d, want 1 at least", o.Limit)
	}
	return nil
}

// AddTo has a manager serve the metrics of some kinds, which are in its cache.
func (o *StateMetrics) AddTo(mgr ctrlmanager.Manager, now func() time.Time, kinds map[string]statemetrics.Kind) error {
	if !o.Enabled {
		return nil
	}
	var all []statemetrics.Kind
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, kinds[name])
	}
	collector := statemetrics.New(statemetrics.Options{Reader: mgr.GetCache(), Leads: mgr.Elected(), Limit: o.Limit, Now: now}, all...)
	if err := metrics.Registry.Register(collector); err != nil {
		return fmt.Errorf("registering the state metrics: %w", err)
	}
	return nil
}
