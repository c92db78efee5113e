package pods

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics tell how long the steps take and how they end.
type Metrics struct {
	seconds  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	replaced *prometheus.CounterVec
}

// NewMetrics returns metrics that the registry serves.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kruise_pod_admission_step_seconds",
			Help:    "How long a step of the admission of new Pods took.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 4, 9),
		}, []string{"step"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_pod_admission_step_failures_total",
			Help: "New Pods that a step stopped, by result: refused for what they ask, or error.",
		}, []string{"step", "result"}),
		replaced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_pod_admission_replaced_containers_total",
			Help: "Containers of new Pods that a sidecar of the same name took the place of.",
		}, []string{"sidecarset"}),
	}
	for _, c := range []prometheus.Collector{m.seconds, m.failures, m.replaced} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) observe(step string, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.seconds.WithLabelValues(step).Observe(took.Seconds())
	if err == nil {
		return
	}
	result := "error"
	var refusal Refusal
	if errors.As(err, &refusal) {
		result = "refused"
	}
	m.failures.WithLabelValues(step, result).Inc()
}

// countReplaced counts a container that a SidecarSet replaced.
func (m *Metrics) countReplaced(sidecarSet string) {
	if m != nil {
		m.replaced.WithLabelValues(sidecarSet).Inc()
	}
}
