package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// readSelection returns the selection by what is stored or pending, and by one SidecarSet or WorkloadSpread more.
// It is called after the configuration was read: a SidecarSet that is no longer pending there is stored by now.
func (r *Reconciler) readSelection(
	ctx context.Context, live *admissionv1.MutatingWebhookConfiguration, admitted admitted,
) (selection, error) {
	more := admitted.set
	known, err := r.readStored(ctx)
	if err != nil {
		return selection{}, err
	}
	sets := known.sets.Items
	waiting := r.stillPending(ctx, live, sets)
	var out selection
	if more != nil && more.canBeStored(sets) {
		out.recent = slices.ContainsFunc(waiting, func(p pending) bool { return r.isRecent(p.At) })
		if waiting, err = withPending(waiting, *more, sets); err != nil {
			return selection{}, err
		}
	}
	for _, p := range waiting {
		out.expiry = earlier(out.expiry, p.expiry(sets))
	}
	annotation, err := formatPending(waiting)
	if err != nil {
		return selection{}, fmt.Errorf("writing annotation %s: %w", keys.PodScopePending, err)
	}
	out.scope = newPodScope(sets, known.markers.Items, waiting)
	out.scope.Pending = annotation
	out.scope.Bound, out.scope.Preferring = podStateScopes(known.states.Items)
	spreads, err := r.selectSpreads(known.spreads.Items, live.Annotations, admitted.spread)
	if err != nil {
		return selection{}, err
	}
	out.scope.Spreads, out.scope.PendingSpreads = spreads.expression, spreads.pending
	out.recent = out.recent || spreads.recent
	out.expiry = earlier(out.expiry, spreads.expiry)
	return out, nil
}

// stored is what decides which new Pods are sent, as it is stored.
type stored struct {
	sets    v1beta1.SidecarSetList
	markers v1alpha1.PodProbeMarkerList
	states  v1beta1.PersistentPodStateList
	spreads v1beta1.WorkloadSpreadList
}

// readStored reads all kinds at the same time, live: the admission of a SidecarSet waits for it. Kinds whose Pods are not sent are left
// out.
func (r *Reconciler) readStored(ctx context.Context) (*stored, error) {
	out := &stored{}
	var errs [4]error
	var running sync.WaitGroup
	for i, read := range []struct {
		name   string
		wanted bool
		into   client.ObjectList
	}{
		{"SidecarSets", true, &out.sets},
		{"PodProbeMarkers", r.Markers, &out.markers},
		{"PersistentPodStates", r.PodStates, &out.states},
		{"WorkloadSpreads", r.Spreads, &out.spreads},
	} {
		if !read.wanted {
			continue
		}
		running.Go(func() {
			if err := r.Client.List(ctx, read.into); err != nil {
				errs[i] = fmt.Errorf("reading %s: %w", read.name, err)
			}
		})
	}
	running.Wait()
	return out, errors.Join(errs[:]...)
}

// isRecent reports whether what was admitted at a time may be missing from the configuration that an API server goes by.
func (r *Reconciler) isRecent(at metav1.Time) bool {
	return r.Now().Sub(at.Time) <= r.Propagation+time.Second
}

// earlier returns the earlier one of two times, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
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
	return slices.DeleteFunc(all, func(p pending) bool {
		expired := !p.expiry(sets).After(r.Now())
		if expired && !p.isStored(sets) {
			log.FromContext(ctx).Info("A SidecarSet was admitted and never stored", "name", p.Name, "admittedAt", p.At)
		}
		return expired
	})
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

// podStateScopes returns what selects the Pods of PersistentPodStates: of those that require a place, and of those that only prefer it.
func podStateScopes(states []v1beta1.PersistentPodState) (bound, preferring string) {
	var requiring, others []*v1beta1.PersistentPodState
	for i := range states {
		if states[i].Spec.RequiredPersistentTopology != nil {
			requiring = append(requiring, &states[i])
		} else {
			others = append(others, &states[i])
		}
	}
	return scope.OfPodStates(requiring), scope.OfPodStates(others)
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
