package apply

import (
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

var (
	writesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruise_writes_total",
		Help: "Writes that plans asked for, by verb, concern and result (ok, conflict, waiting for a budget, error).",
	}, []string{"verb", "concern", "result"})

	staleCaches = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kruise_stale_cache_reads_total",
		Help: "Times that a cache did not show our own writes within ten seconds, so that an owner was read live.",
	})

	writeLimit = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kruise_write_limit",
		Help: "Writes that may be under way at the same time, of which three deletions count as one: " +
			"fewer while the API server takes a multiple of its time at rest over them.",
	})

	podUpdates = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruise_pod_updates_total",
		Help: "Updates of Pods that have begun, by the kind of their owner and by method (InPlace, Recreate).",
	}, []string{"kind", "method"})

	fallbacks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruise_in_place_fallbacks_total",
		Help: "Pods that were recreated although an update in place was wanted, by the kind of their owner and the field of the " +
			"template that can't change in place.",
	}, []string{"kind", "field"})

	// leakedExpectations counts the same for CloneSets under the name that dashboards and alerts of this API have always watched.
	leakedExpectations = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cloneset_scale_expectation_leakage",
		Help: "Times that a CloneSet's own writes were not seen in time.",
	}, []string{"namespace", "name"})
)

// RegisterMetrics adds the metrics of this package to those that the process serves.
func RegisterMetrics() error {
	for _, c := range []prometheus.Collector{writesTotal, writeLimit, podUpdates, fallbacks, staleCaches, leakedExpectations} {
		if err := metrics.Registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func countWrite(a plan.Action, err error) {
	result := "ok"
	switch {
	case apierrors.IsConflict(err):
		result = "conflict"
	case IsWaiting(err):
		result = "waiting"
	case err != nil:
		result = "error"
	}
	writesTotal.WithLabelValues(string(a.Verb), string(a.Concern), result).Inc()
}

// countUpdate counts the update of a Pod of an owner that a write has begun, if it is one.
func (e *Executor) countUpdate(owner plan.Object, a plan.Action) {
	if a.Method == "" {
		return
	}
	kind := "unknown"
	if known, err := apiutil.GVKForObject(owner, e.Scheme); err == nil {
		kind = known.Kind
	}
	podUpdates.WithLabelValues(kind, string(a.Method)).Inc()
	if a.NotInPlace != "" {
		fallbacks.WithLabelValues(kind, a.NotInPlace).Inc()
	}
}

func countLate(owner plan.Object) {
	staleCaches.Inc()
	if set, ok := owner.(*v1beta1.CloneSet); ok {
		leakedExpectations.WithLabelValues(set.Namespace, set.Name).Inc()
	}
}

func forgetLate(owner plan.Object) {
	if set, ok := owner.(*v1beta1.CloneSet); ok {
		leakedExpectations.DeleteLabelValues(set.Namespace, set.Name)
	}
}
