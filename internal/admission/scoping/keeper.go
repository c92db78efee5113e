package scoping

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
)

// Keeper keeps the webhooks for Pods true to the SidecarSets.
type Keeper struct {
	// Client must read without a cache: what is stored counts, not what is known of it here.
	Client client.Client
	// Configuration is the name of the webhook configuration, and Shipped its webhook for launch orders as it is shipped.
	Configuration string
	Shipped       admissionv1.MutatingWebhook
	// Settle is how long the admission of a SidecarSet waits until every API server goes by the configuration that it widened. They learn of it
	// within milliseconds.
	Settle time.Duration
	// Markers says that Pods which PodProbeMarkers select are to be sent, too.
	Markers bool
	// Pause is the wait before a write is tried again because somebody else was first; it doubles with every further try.
	Pause time.Duration
	Now   func() time.Time

	// turn is held from a read to the write on top of it: users write many SidecarSets at the same time, which must not take their tries from each
	// other.
	turn sync.Mutex
}

// Accept widens the configuration for a SidecarSet that is about to be stored; before is nil if it is created. When it returns, API servers send
// the Pods that the SidecarSet selects. It does nothing if it selects what it selected before.
func (k *Keeper) Accept(ctx context.Context, before, after *v1beta1.SidecarSet) error {
	now, ok := scope.OfSidecarSet(after)
	if !ok {
		return nil
	}
	if before != nil {
		if was, ok := scope.OfSidecarSet(before); ok && was.Equal(now) {
			return nil
		}
	}
	more := noteOf(before, after, k.Now())
	done, err := k.keep(ctx, &more)
	if err != nil {
		return fmt.Errorf("making the API server send the Pods that it selects: %w", err)
	}
	if !done.widened {
		return nil
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("making the API server send the Pods that it selects: %w", ctx.Err())
	case <-time.After(k.Settle):
		return nil
	}
}

// kept is the outcome of keep.
type kept struct {
	// widened is true if API servers may not yet go by what the configuration says.
	widened bool
	// next is when the first of the notes is to be forgotten; zero if there are none.
	next time.Time
}

// keep brings the configuration in line with the SidecarSets that are stored or on their way, and with one more, if there is one.
func (k *Keeper) keep(ctx context.Context, more *note) (kept, error) {
	var done kept
	err := untilFirst(k.Pause, func() (err error) {
		done, err = k.try(ctx, more)
		return err
	})
	return done, err
}

func (k *Keeper) try(ctx context.Context, more *note) (kept, error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	live := &admissionv1.MutatingWebhookConfiguration{}
	if err := k.Client.Get(ctx, client.ObjectKey{Name: k.Configuration}, live); err != nil {
		return kept{}, fmt.Errorf("reading MutatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	// After the configuration: a SidecarSet whose note is gone from it is stored by now.
	sets := &v1beta1.SidecarSetList{}
	if err := k.Client.List(ctx, sets); err != nil {
		return kept{}, fmt.Errorf("reading SidecarSets: %w", err)
	}
	markers := &v1alpha1.PodProbeMarkerList{}
	if k.Markers {
		if err := k.Client.List(ctx, markers); err != nil {
			return kept{}, fmt.Errorf("reading PodProbeMarkers: %w", err)
		}
	}
	now := k.Now()
	notes := k.notes(ctx, live, sets.Items)
	var done kept
	if more != nil {
		// Another request for the same may have widened it a moment ago.
		done.widened = slices.ContainsFunc(notes, func(n note) bool { return now.Sub(n.At.Time) <= k.Settle+time.Second })
		notes = with(notes, *more)
	}
	for _, n := range notes {
		if end := n.end(sets.Items); done.next.IsZero() || end.Before(done.next) {
			done.next = end
		}
	}
	next, err := k.configuration(live, notes, asked(sets.Items, markers.Items, notes))
	if err != nil {
		return done, err
	}
	widens := more != nil && !equality.Semantic.DeepEqual(live.Webhooks, next.Webhooks)
	written, err := change(ctx, k.Client, live, next)
	if err != nil || !written {
		return done, err
	}
	done.widened = done.widened || widens
	log.FromContext(ctx).Info("Changed which Pods are sent", "webhooks", len(next.Webhooks), "sidecarSets", len(sets.Items), "podProbeMarkers", len(markers.Items), "onTheirWay", len(notes))
	return done, nil
}

// notes returns those of the configuration that still matter.
func (k *Keeper) notes(ctx context.Context, live *admissionv1.MutatingWebhookConfiguration, sets []v1beta1.SidecarSet) []note {
	notes, err := readNotes(live.Annotations[keys.PodScopePending])
	if err != nil {
		// Somebody else wrote it. It would have mattered for two minutes at most.
		log.FromContext(ctx).Error(err, "An annotation can't be read and is removed", "annotation", keys.PodScopePending)
		return nil
	}
	return slices.DeleteFunc(notes, func(n note) bool { return !n.end(sets).After(k.Now()) })
}

// asked returns what is to be sent.
func asked(sets []v1beta1.SidecarSet, markers []v1alpha1.PodProbeMarker, notes []note) wanted {
	var out wanted
	var interests []scope.Interest
	for i := range sets {
		if interest, ok := scope.OfSidecarSet(&sets[i]); ok {
			interests = append(interests, interest)
		}
	}
	for _, n := range notes {
		if interest, ok := scope.OfSelectors(n.Selector, n.NamespaceSelector); ok {
			interests = append(interests, interest)
		}
	}
	out.sidecarSets = scope.Entries(interests)
	var probed []scope.Interest
	for i := range markers {
		if interest, ok := scope.OfPodProbeMarker(&markers[i]); ok {
			probed = append(probed, interest)
		}
	}
	if entries := scope.Entries(probed); len(entries) > 0 {
		out.markers = &entries[0] // there is one: markers say nothing of the labels of namespaces
	}
	return out
}

// configuration returns live as it is to be.
func (k *Keeper) configuration(live *admissionv1.MutatingWebhookConfiguration, notes []note, asked wanted) (*admissionv1.MutatingWebhookConfiguration, error) {
	text, err := writeNotes(notes)
	if err != nil {
		return nil, fmt.Errorf("writing annotation %s: %w", keys.PodScopePending, err)
	}
	next := live.DeepCopy()
	next.Webhooks = arrange(next.Webhooks, k.Shipped, asked)
	switch {
	case text == "":
		delete(next.Annotations, keys.PodScopePending)
	case next.Annotations == nil:
		next.Annotations = map[string]string{keys.PodScopePending: text}
	default:
		next.Annotations[keys.PodScopePending] = text
	}
	return next, nil
}
