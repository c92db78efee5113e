package rollout

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Metrics are what releases of all Rollouts have taken, and how they ended.
type Metrics struct {
	upgrade, pause prometheus.Histogram
	ended, stopped *prometheus.CounterVec
}

// NewMetrics returns Metrics that the process serves.
func NewMetrics() (*Metrics, error) {
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600},
		})
	}
	m := &Metrics{
		upgrade: seconds("kruise_rollout_step_upgrade_seconds", "How long the Pods of a step took until they were ready."),
		pause:   seconds("kruise_rollout_step_pause_seconds", "How long a step waited at its pause, for time or for an approval."),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_rollout_releases_total", Help: "Releases that have ended, by result (succeeded, rolled_back).",
		}, []string{"result"}),
		stopped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_rollout_stops_total",
			Help: "Times that a release was stopped, by reason (AnalysisFailed, GuardFailed, Rejected, StepTimeout, Rollback).",
		}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{m.upgrade, m.pause, m.ended, m.stopped} {
		if err := metrics.Registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics of Rollouts: %w", err)
		}
	}
	return m, nil
}

// count adds what has changed from one status to the next.
func (m *Metrics) count(was, is *v1beta1.RolloutStatus, now time.Time) {
	if m == nil {
		return
	}
	for _, s := range spans(was, is, now) {
		if s.state == v1beta1.StepStateUpgrade {
			m.upgrade.Observe(s.took.Seconds())
		} else {
			m.pause.Observe(s.took.Seconds())
		}
	}
	if result := ended(was, is); result != "" {
		m.ended.WithLabelValues(result).Inc()
	}
	if reason := stopped(was, is); reason != "" {
		m.stopped.WithLabelValues(reason).Inc()
	}
}

// span is how long a step was in a state.
type span struct {
	state v1beta1.StepState
	took  time.Duration
}

// spans returns the state that a step has left, if the status says since when it was in it.
func spans(was, is *v1beta1.RolloutStatus, now time.Time) []span {
	before, after := commonOf(was), commonOf(is)
	if before == nil || after == nil || before.LastUpdateTime == nil || was.Phase != v1beta1.RolloutPhaseProgressing ||
		before.CurrentStepState == after.CurrentStepState && before.CurrentStepIndex == after.CurrentStepIndex {
		return nil
	}
	switch state := before.CurrentStepState; state {
	case v1beta1.StepStateUpgrade, v1beta1.StepStatePaused:
		return []span{{state, now.Sub(before.LastUpdateTime.Time)}}
	case v1beta1.StepStateReady: // an approval, which changes nothing else
		return []span{{v1beta1.StepStatePaused, now.Sub(before.LastUpdateTime.Time)}}
	}
	return nil
}

// ended returns how a release has ended; empty if none has just now.
func ended(was, is *v1beta1.RolloutStatus) string {
	before, after := find(was, v1beta1.ConditionSucceeded), find(is, v1beta1.ConditionSucceeded)
	switch {
	case after == nil || before != nil && before.Status == after.Status:
		return ""
	case after.Status == corev1.ConditionTrue:
		return "succeeded"
	}
	return "rolled_back"
}

// stopped returns why a release was stopped; empty if none was just now.
func stopped(was, is *v1beta1.RolloutStatus) string {
	before, after := reasonOf(was), reasonOf(is)
	switch after {
	case before:
		return ""
	case v1beta1.ReasonAnalysisFailed, v1beta1.ReasonGuardFailed, v1beta1.ReasonRejected, v1beta1.ReasonStepTimeout,
		v1beta1.ReasonThirdVersion:
		return after
	case v1beta1.ReasonCancelling:
		if isGoingBack(was, is) {
			return eventRollback
		}
	}
	return ""
}
