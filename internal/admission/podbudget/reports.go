package podbudget

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
	// eventInterval is the shortest time between two events on a Pod: clients that are denied try again, some every second.
	eventInterval = time.Minute
	// maxRemembered is how many Pods are remembered before those whose event is older than eventInterval are dropped.
	maxRemembered = 1000
	// maxSeries is how many series the metric has before further users are counted together, and seriesTTL how long one is served that
	// nothing is added to, such as that of a budget that is gone.
	maxSeries = 1000
	seriesTTL = 24 * time.Hour
	// others is the user that stands for all further ones.
	others = "others"
)

// Reports writes down what was denied: in a metric, in events on the Pods, and in the protection log.
type Reports struct {
	denials *prometheus.CounterVec
	events  record.EventRecorder
	log     *Log
	now     func() time.Time

	mu        sync.Mutex
	lastEvent map[types.UID]time.Time
	// series are when the metric last counted a denial, by budget and user.
	series map[[2]string]time.Time
}

// ReportOptions is where denied requests are written down.
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
		denials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pod_unavailable_budget",
			Help: "Requests on Pods that a PodUnavailableBudget refused, by budget and by who asked.",
		}, []string{"kind_namespace_name", "username"}),
		events: o.Events, log: o.Log, now: o.Now, lastEvent: map[types.UID]time.Time{}, series: map[[2]string]time.Time{},
	}
	return r, o.Registry.Register(r.denials)
}

// denied reports a request that was denied.
func (r *Reports) denied(asked *disruption.Request, v disruption.Decision, message string) {
	if r == nil || v.Refused == disruption.Kubernetes {
		return // the API server reports its own budgets
	}
	const kind = "PodUnavailableBudget"
	r.count(fmt.Sprintf("%s_%s_%s", kind, v.Budget.Namespace, v.Budget.Name), asked.User)
	r.log.Write(Line{Event: "PUB", Kind: kind, Namespace: v.Budget.Namespace, Name: v.Budget.Name, UserAgent: asked.User})
	deletes := asked.Operation == v1beta1.PubDeleteOperation || asked.Operation == v1beta1.PubEvictOperation
	if deletes && !asked.DryRun && r.isDue(asked.Pod.UID) {
		r.events.Event(asked.Pod, corev1.EventTypeWarning, EventPrevented, "openkruise pub prevents pod deletion: "+message)
	}
}

// count adds a denial to the metric. Who reaches the webhook can say any user name.
func (r *Reports) count(budget, user string) {
	now, one := r.now(), [2]string{budget, user}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.series[one]; !known {
		maps.DeleteFunc(r.series, func(old [2]string, last time.Time) bool {
			return now.Sub(last) >= seriesTTL && r.denials.DeleteLabelValues(old[0], old[1])
		})
		if len(r.series) >= maxSeries {
			one[1] = others
		}
	}
	r.series[one] = now
	r.denials.WithLabelValues(one[0], one[1]).Inc()
}

// isDue reports whether a Pod has had no event for eventInterval.
func (r *Reports) isDue(p types.UID) bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.lastEvent[p]; ok && now.Sub(last) < eventInterval {
		return false
	}
	if len(r.lastEvent) >= maxRemembered {
		maps.DeleteFunc(r.lastEvent, func(_ types.UID, last time.Time) bool { return now.Sub(last) >= eventInterval })
	}
	r.lastEvent[p] = now
	return true
}
