package guard

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/disruption"
)

// EventPrevented is the reason of the event on a Pod that a budget keeps from being deleted. Wire: users' alerts look for it.
const EventPrevented = "PubPreventPodDeletion"

// EventSource is the component that these events come from.
const EventSource = "pub-validating-webhook"

const (
	// quiet is how long a Pod gets no second event: who is refused tries again, some every second.
	quiet = time.Minute
	// mostTold is how many Pods are remembered at least until those that are long since told are forgotten.
	mostTold = 1000
)

// Reports tells of what was refused: in a metric, in events on the Pods, and in the protection log.
type Reports struct {
	refusals *prometheus.CounterVec
	events   record.EventRecorder
	log      *Log
	now      func() time.Time

	mu   sync.Mutex
	told map[types.UID]time.Time
}

// ReportOptions is where refusals are told.
type ReportOptions struct {
	Registry prometheus.Registerer
	Events   record.EventRecorder
	// Log may be nil.
	Log *Log
	Now func() time.Time
}

// NewReports returns reports whose metric the registry serves.
func NewReports(o ReportOptions) (*Reports, error) {
	r := &Reports{
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pod_unavailable_budget",
			Help: "Requests on Pods that a PodUnavailableBudget refused, by budget and by who asked.",
		}, []string{"kind_namespace_name", "username"}),
		events: o.Events, log: o.Log, now: o.Now, told: map[types.UID]time.Time{},
	}
	return r, o.Registry.Register(r.refusals)
}

// refused tells of one refusal.
func (r *Reports) refused(asked *disruption.Request, v disruption.Decision, message string) {
	if r == nil || v.Refused == disruption.Kubernetes {
		return // what another budget refuses, that one tells
	}
	const kind = "PodUnavailableBudget"
	r.refusals.WithLabelValues(fmt.Sprintf("%s_%s_%s", kind, v.Budget.Namespace, v.Budget.Name), asked.User).Inc()
	r.log.Write(Line{Event: "PUB", Kind: kind, Namespace: v.Budget.Namespace, Name: v.Budget.Name, UserAgent: asked.User})
	deletes := asked.Operation == v1beta1.PubDeleteOperation || asked.Operation == v1beta1.PubEvictOperation
	if deletes && !asked.DryRun && r.isNews(asked.Pod.UID) {
		r.events.Event(asked.Pod, corev1.EventTypeWarning, EventPrevented, "openkruise pub prevents pod deletion: "+message)
	}
}

// isNews reports whether a Pod has had no event for a while.
func (r *Reports) isNews(p types.UID) bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.told[p]; ok && now.Sub(last) < quiet {
		return false
	}
	if len(r.told) >= mostTold {
		maps.DeleteFunc(r.told, func(_ types.UID, last time.Time) bool { return now.Sub(last) >= quiet })
	}
	r.told[p] = now
	return true
}
