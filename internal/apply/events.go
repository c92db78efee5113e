package apply

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// emit tells of an action's outcome.
func (e *Executor) emit(owner plan.Object, a plan.Action, err error) {
	on := owner
	if a.OnObject {
		on = a.Object()
	}
	switch {
	case err == nil && a.Event != "":
		e.Events.Event(on, cmp.Or(a.EventType, corev1.EventTypeNormal), a.Event, a.EventMessage)
	case a.FailedEvent != "" && IsFailure(err):
		e.Events.Event(on, corev1.EventTypeWarning, a.FailedEvent, a.FailedPrefix+err.Error())
	}
}

// EmitHolds tells of what a plan holds back, and only of what its owner's plan before did not hold back in the same words.
func (e *Executor) EmitHolds(owner plan.Object, p plan.Plan) {
	var now map[plan.Hold]bool
	for _, h := range p.Holds {
		if h.Event != "" {
			if now == nil {
				now = map[plan.Hold]bool{}
			}
			now[h] = true
		}
	}
	var before map[plan.Hold]bool
	e.owners.Do(owner.GetUID(), func(m *memory) { before, m.held = m.held, now })
	for h := range now {
		if !before[h] {
			on := runtime.Object(owner)
			if h.On != (plan.Reference{}) {
				on = &corev1.ObjectReference{APIVersion: h.On.APIVersion, Kind: h.On.Kind, Namespace: h.On.Namespace, Name: h.On.Name, UID: h.On.UID}
			}
			e.Events.Event(on, cmp.Or(h.EventType, corev1.EventTypeWarning), h.Event, h.Why)
		}
	}
}

var (
	writesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruise_writes_total",
		Help: "Writes that plans asked for, by verb, concern and result (ok, conflict, waiting for a budget, error).",
	}, []string{"verb", "concern", "result"})

	staleCaches = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kruise_stale_cache_reads_total",
		Help: "Times that a cache did not show our own writes within ten seconds, so that an owner was read live.",
	})

	// leakedExpectations counts the same for CloneSets under the name that dashboards and alerts of this API have always watched.
	leakedExpectations = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cloneset_scale_expectation_leakage",
		Help: "Times that a CloneSet's own writes were not seen in time.",
	}, []string{"namespace", "name"})
)

// RegisterMetrics adds the metrics of this package to those that the process serves.
func RegisterMetrics() error {
	for _, c := range []prometheus.Collector{writesTotal, staleCaches, leakedExpectations} {
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

func countLate(owner plan.Object) {
	staleCaches.Inc()
	if set, ok := owner.(*v1beta1.CloneSet); ok {
		leakedExpectations.WithLabelValues(set.Namespace, set.Name).Inc()
	}
}
