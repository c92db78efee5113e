package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	pulls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruise_daemon_image_pulls_total",
		Help: "Attempts of the daemon to pull an image that have ended, by result (ok, error).",
	}, []string{"result"})

	pullSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "kruise_daemon_image_pull_seconds",
		Help:    "How long attempts to pull an image took that succeeded.",
		Buckets: []float64{0.5, 1, 2, 5, 10, 20, 40, 60, 120, 300, 600, 1800},
	})
)

// RegisterMetrics adds the metrics of pulls to those that the process serves.
func RegisterMetrics() error {
	for _, c := range []prometheus.Collector{pulls, pullSeconds} {
		if err := metrics.Registry.Register(c); err != nil {
			return fmt.Errorf("registering the metrics of pulls: %w", err)
		}
	}
	return nil
}

// countPull counts an attempt. One that was ended to let others pull, or because nobody wants it any more, is neither good nor bad.
func countPull(ctx context.Context, took time.Duration, err error) {
	switch {
	case err == nil:
		pulls.WithLabelValues("ok").Inc()
		pullSeconds.Observe(took.Seconds())
	case !errors.Is(ctx.Err(), context.Canceled):
		pulls.WithLabelValues("error").Inc()
	}
}
