package spread

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Metrics count what becomes of new Pods of workloads with a WorkloadSpread, and what that costs. A nil one counts nothing.
type Metrics struct{ assignments, writes *prometheus.CounterVec }

// NewMetrics returns metrics that the registry serves.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		assignments: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_workloadspread_assignments_total",
			Help: "New Pods of workloads with a WorkloadSpread, by result: assigned to a subset, unassigned where none had room, or error.",
		}, []string{"result"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_workloadspread_ledger_writes_total",
			Help: "Writes of the ledgers of WorkloadSpreads at the admission of Pods, by result: done, conflict, or error.",
		}, []string{"result"}),
	}
	for _, c := range []prometheus.Collector{m.assignments, m.writes} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of WorkloadSpreads: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) countAssignment(to Assignment, err error) {
	switch {
	case m == nil || err == nil && to.Spread == nil: // the Pod belongs to no WorkloadSpread
	case err != nil:
		m.assignments.WithLabelValues("error").Inc()
	case to.Subset < 0:
		m.assignments.WithLabelValues("unassigned").Inc()
	default:
		m.assignments.WithLabelValues("assigned").Inc()
	}
}

func (m *Metrics) countWrite(err error) {
	switch {
	case m == nil:
	case err == nil:
		m.writes.WithLabelValues("done").Inc()
	case apierrors.IsConflict(err):
		m.writes.WithLabelValues("conflict").Inc()
	default:
		m.writes.WithLabelValues("error").Inc()
	}
}
