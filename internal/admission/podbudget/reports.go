package podbudget

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/record"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/refusal"
	"github.com/seed-69ecc383/kruise/internal/disruption"
)

// EventPrevented is the reason of the event on a Pod that a budget keeps from being deleted. Wire: users' alerts look for it.
const EventPrevented = "PubPreventPodDeletion"

// EventSource is the component that these events come from.
const EventSource = "pub-validating-webhook"

// Reports writes down what was denied: in a metric, in events on the Pods, and in the protection log.
type Reports struct {
	denials *refusal.Counter
	events  *refusal.Events
	log     *refusal.Log
}

// ReportOptions is where denied requests are written down.
type ReportOptions struct {
	Registry prometheus.Registerer
	Events   record.EventRecorder
	// Log may be nil.
	Log *refusal.Log
	Now func() time.Time
}

// NewReports returns reports whose metric the registry serves.
func NewReports(o ReportOptions) (*Reports, error) {
	denials, err := refusal.NewCounter(o.Registry, refusal.CounterOptions{
		Name: "pod_unavailable_budget", What: "kind_namespace_name", Now: o.Now,
		Help: "Requests on Pods that a PodUnavailableBudget refused, by budget and by who asked.",
	})
	return &Reports{denials: denials, events: refusal.NewEvents(o.Events, o.Now), log: o.Log}, err
}

// denied reports a request that was denied.
func (r *Reports) denied(asked *disruption.Request, v disruption.Decision, message string) {
	if r == nil || v.Refused == disruption.Kubernetes {
		return // the API server reports its own budgets
	}
	const kind = "PodUnavailableBudget"
	r.denials.Add(fmt.Sprintf("%s_%s_%s", kind, v.Budget.Namespace, v.Budget.Name), asked.User)
	r.log.Write(refusal.Line{Event: "PUB", Kind: kind, Namespace: v.Budget.Namespace, Name: v.Budget.Name, UserAgent: asked.User})
	deletes := asked.Operation == v1beta1.PubDeleteOperation || asked.Operation == v1beta1.PubEvictOperation
	if deletes && !asked.DryRun && r.events.Due(asked.Pod.UID) {
		r.events.Warn(asked.Pod, EventPrevented, "openkruise pub prevents pod deletion: "+message)
	}
}
