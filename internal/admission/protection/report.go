package protection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/admission/refusal"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	rules "github.com/seed-69ecc383/kruise/internal/rules/protection"
)

const (
	// EventBlocked is the reason of the event on an object whose deletion is refused.
	EventBlocked = "DeletionBlocked"
	// EventSource is the component that these events come from.
	EventSource = "deletion-protection"
)

// Reports writes down refused deletions: in metrics, in the protection log, and in events on objects.
type Reports struct {
	// counters are by the beginning of their name.
	counters map[string]*refusal.Counter
	log      *refusal.Log
	events   *refusal.Events
	live     client.Reader
}

// ReportOptions is where refused deletions are written down.
type ReportOptions struct {
	Registry prometheus.Registerer
	Events   record.EventRecorder
	// Log may be nil.
	Log *refusal.Log
	// Live reads the objects that get an event.
	Live client.Reader
	Now  func() time.Time
}

// NewReports returns reports whose metrics the registry serves.
func NewReports(o ReportOptions) (*Reports, error) {
	r := &Reports{counters: map[string]*refusal.Counter{}, log: o.Log, events: refusal.NewEvents(o.Events, o.Now), live: o.Live}
	var errs []error
	for name, what := range map[string]string{
		"namespace": "name", "crd": "name", "workload": "kind_namespace_name", "service": "kind_namespace_name",
		"ingress": "kind_namespace_name", "object": "kind_namespace_name",
	} {
		counter, err := refusal.NewCounter(o.Registry, refusal.CounterOptions{
			Name: name + "_deletion_protection", What: what, Now: o.Now,
			Help: "Deletions that the label " + keys.DeleteProtection + " refused, by what was to be deleted and by who asked.",
		})
		r.counters[name], errs = counter, append(errs, err)
	}
	return r, errors.Join(errs...)
}

// Report returns the handler that writes down deletions that the policy is about to refuse. It allows all of them.
func Report(o Options) admission.Handler {
	return deletions(func(ctx context.Context, asked admission.Request, _ *metav1.PartialObjectMetadata) admission.Response {
		u, err := request.Parse(asked.OldObject)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		resource := schema.GroupResource{Group: asked.Resource.Group, Resource: asked.Resource.Resource}
		if why := rules.Refusal(resource, u); why != "" {
			o.Reports.refused(ctx, asked, why+owners(u))
		}
		return admission.Allowed("")
	})
}

// owners names the owners of an object, whose deletion may wait for it.
func owners(o client.Object) string {
	var names []string
	for _, owner := range o.GetOwnerReferences() {
		names = append(names, owner.Kind+" "+owner.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return "; it is owned by " + strings.Join(names, ", ")
}

// refused writes down a deletion that is refused.
func (r *Reports) refused(ctx context.Context, asked admission.Request, why string) {
	if r == nil {
		return
	}
	user, name := asked.UserInfo.Username, asked.Name
	counted := fmt.Sprintf("%s_%s_%s", asked.Kind.Kind, asked.Namespace, name)
	switch kind := counterOf(asked.Kind); kind {
	case "namespace", "crd":
		r.counters[kind].Add(name, user)
	default:
		r.counters[kind].Add(counted, user)
	}
	r.log.Write(refusal.Line{Event: "DeletionProtection", Kind: asked.Kind.Kind, Namespace: asked.Namespace, Name: name, UserAgent: user})
	if asked.DryRun == nil || !*asked.DryRun {
		r.tell(ctx, asked, fmt.Sprintf("%s asked for the deletion: %s", user, why))
	}
}

// counterOf returns the beginning of the name of the metric for a kind.
func counterOf(kind metav1.GroupVersionKind) string {
	switch kind.Group {
	case "":
		if kind.Kind == "Namespace" || kind.Kind == "Service" {
			return strings.ToLower(kind.Kind)
		}
	case "apiextensions.k8s.io":
		return "crd"
	case "networking.k8s.io":
		return "ingress"
	case "apps", "batch", "apps.kruise.io":
		return "workload"
	}
	return "object"
}

// tell writes an event on an object, if it is there as it was told of: who reaches the webhook could make up another.
func (r *Reports) tell(ctx context.Context, asked admission.Request, message string) {
	told := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(asked.OldObject.Raw, told); err != nil {
		return // it has been read before
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(schema.GroupVersionKind(asked.Kind))
	key := client.ObjectKey{Namespace: asked.Namespace, Name: told.Name}
	// Without the right to read objects of this kind there is no event.
	if err := r.live.Get(ctx, key, there); err != nil || there.UID != told.UID || there.Labels[keys.DeleteProtection] == "" {
		return
	}
	if r.events.Due(there.UID) {
		r.events.Warn(there, EventBlocked, message)
	}
}
