package pods

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics tell how long the admission of new Pods and its steps take and how they end.
type Metrics struct {
	handled  prometheus.Histogram
	seconds  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	replaced *prometheus.CounterVec
}

// NewMetrics returns metrics that the registry serves.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		handled: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kruise_pod_admission_seconds",
			Help:    "How long the admission of a new Pod took in the manager, from its decoded request to the answer.",
			Buckets: []float64{0.0001, 0.0002, 0.0003, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 3},
		}),
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
	for _, c := range []prometheus.Collector{m.handled, m.seconds, m.failures, m.replaced} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observeHandled counts a Pod that was answered for, whatever the answer.
func (m *Metrics) observeHandled(took time.Duration) {
	if m != nil {
		m.handled.Observe(took.Seconds())
	}
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
	var denied Denied
	if errors.As(err, &denied) {
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
