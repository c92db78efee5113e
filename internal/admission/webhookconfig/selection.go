package webhookconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
)

// selection is which new Pods are to be sent, and what is pending.
type selection struct {
	scope *PodScope
	// recent means that another SidecarSet was admitted a moment ago, so that API servers may not yet go by the configuration as it is.
	recent bool
	// expiry is when the first pending SidecarSet expires; zero if there is none.
	expiry time.Time
}

// readSelection returns the selection by the SidecarSets and PodProbeMarkers that are stored or pending, and by one more that is, if any.
// It is called after the configuration was read: a SidecarSet that is no longer pending there is stored by now.
func (r *Reconciler) readSelection(ctx context.Context, live *admissionv1.MutatingWebhookConfiguration, more *pending) (selection, error) {
	sets := &v1beta1.SidecarSetList{}
	if err := r.Client.List(ctx, sets); err != nil {
		return selection{}, fmt.Errorf("reading SidecarSets: %w", err)
	}
	markers := &v1alpha1.PodProbeMarkerList{}
	if r.Markers {
		if err := r.Client.List(ctx, markers); err != nil {
			return selection{}, fmt.Errorf("reading PodProbeMarkers: %w", err)
		}
	}
	waiting := r.stillPending(ctx, live, sets.Items)
	var out selection
	if more != nil {
		out.recent = slices.ContainsFunc(waiting, func(p pending) bool { return r.Now().Sub(p.At.Time) <= r.Propagation+time.Second })
		waiting = withPending(waiting, *more)
	}
	for _, p := range waiting {
		if end := p.expiry(sets.Items); out.expiry.IsZero() || end.Before(out.expiry) {
			out.expiry = end
		}
	}
	annotation, err := formatPending(waiting)
	if err != nil {
		return selection{}, fmt.Errorf("writing annotation %s: %w", keys.PodScopePending, err)
	}
	out.scope = newPodScope(sets.Items, markers.Items, waiting)
	out.scope.Pending = annotation
	return out, nil
}

// stillPending returns what the annotation holds, without what has expired.
func (r *Reconciler) stillPending(ctx context.Context, live *admissionv1.MutatingWebhookConfiguration,
	sets []v1beta1.SidecarSet) []pending {
	all, err := parsePending(live.Annotations[keys.PodScopePending])
	if err != nil {
		// Somebody else wrote it. It would have mattered for two minutes at most.
		log.FromContext(ctx).Error(err, "An annotation can't be read and is removed", "annotation", keys.PodScopePending)
		return nil
	}
	return slices.DeleteFunc(all, func(p pending) bool { return !p.expiry(sets).After(r.Now()) })
}

func newPodScope(sets []v1beta1.SidecarSet, markers []v1alpha1.PodProbeMarker, waiting []pending) *PodScope {
	var bySets, byMarkers []scope.Interest
	for i := range sets {
		if interest, ok := scope.OfSidecarSet(&sets[i]); ok {
			bySets = append(bySets, interest)
		}
	}
	for _, p := range waiting {
		if interest, ok := scope.OfSelectors(p.Selector, p.NamespaceSelector); ok {
			bySets = append(bySets, interest)
		}
	}
	for i := range markers {
		if interest, ok := scope.OfPodProbeMarker(&markers[i]); ok {
			byMarkers = append(byMarkers, interest)
		}
	}
	return &PodScope{SidecarSets: scope.Entries(bySets), Markers: scope.Entries(byMarkers)}
}

// namespacesWithBudgets returns the namespaces that hold PodUnavailableBudgets, sorted; none if evictions are not to be sent.
func (r *Reconciler) namespacesWithBudgets(ctx context.Context) ([]string, error) {
	if !r.Evictions {
		return nil, nil
	}
	var budgets policyv1beta1.PodUnavailableBudgetList
	if err := r.Client.List(ctx, &budgets); err != nil {
		return nil, fmt.Errorf("reading PodUnavailableBudgets: %w", err)
	}
	namespaces := map[string]bool{}
	for i := range budgets.Items {
		namespaces[budgets.Items[i].Namespace] = true
	}
	return slices.Sorted(maps.Keys(namespaces)), nil
}

// EvictionsSentIn returns how long it takes until all evictions in a namespace are sent; 0 if they are. It is known to the leader.
func (r *Reconciler) EvictionsSentIn(namespace string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.evictionsSince[namespace]
	if !ok {
		return r.Propagation
	}
	return max(0, since.Add(r.Propagation).Sub(r.Now()))
}

// noteEvictions notes whose evictions are sent as of now.
func (r *Reconciler) noteEvictions(namespaces []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := map[string]time.Time{}
	for _, namespace := range namespaces {
		since[namespace] = r.Now()
		if earlier, ok := r.evictionsSince[namespace]; ok {
			since[namespace] = earlier
		}
	}
	r.evictionsSince = since
}

const (
	// requestTimeout is after what time a request that was admitted must have been stored or have failed: an API server gives a request a
	// minute, unless it is told otherwise.
	requestTimeout = 2 * time.Minute
	// pendingMinimum is how long a pending SidecarSet stays at least, for the managers whose caches don't show it yet when it is stored.
	pendingMinimum = 5 * time.Second
)

// pending is a SidecarSet that has been admitted and may not be stored yet.
//
// Wire: in the annotation keys.PodScopePending of the webhook configuration, as a JSON list.
type pending struct {
	Name string `json:"name"`
	// UID is that of the object, which a new one has before it is stored.
	UID types.UID `json:"uid,omitempty"`
	// Generation is that of the stored object which the request changes, 0 if it creates it. Once a later one is stored, this request has
	// been stored or never will be.
	Generation        int64                 `json:"generation,omitempty"`
	At                metav1.Time           `json:"at"`
	Selector          *metav1.LabelSelector `json:"selector"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// newPending returns what is pending with a change of a SidecarSet; before is nil when it is created.
func newPending(before, after *v1beta1.SidecarSet, now time.Time) pending {
	p := pending{
		Name: after.Name, UID: after.UID, At: metav1.NewTime(now.Truncate(time.Second)),
		Selector: after.Spec.Selector, NamespaceSelector: after.Spec.NamespaceSelector,
	}
	if before != nil {
		p.Generation = before.Generation
	}
	return p
}

// isOlderThan reports whether the SidecarSet shows whatever the request has led to.
func (p pending) isOlderThan(set *v1beta1.SidecarSet) bool {
	return set.UID == p.UID && set.Generation > p.Generation
}

// expiry returns when it is pending no more: once every manager knows the SidecarSet, or the request must have failed.
func (p pending) expiry(stored []v1beta1.SidecarSet) time.Time {
	for i := range stored {
		if p.isOlderThan(&stored[i]) {
			return p.At.Add(pendingMinimum)
		}
	}
	return p.At.Add(requestTimeout)
}

// parsePending reads the annotation.
func parsePending(text string) ([]pending, error) {
	if text == "" {
		return nil, nil
	}
	var all []pending
	err := json.Unmarshal([]byte(text), &all)
	return all, err
}

// formatPending returns the annotation, which is empty if nothing is pending.
func formatPending(all []pending) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// withPending returns all and one more, which replaces an earlier one that differs in its time only.
func withPending(all []pending, more pending) []pending {
	same := func(p pending) bool {
		p.At = more.At
		return equality.Semantic.DeepEqual(p, more)
	}
	return append(slices.DeleteFunc(slices.Clone(all), same), more)
}
