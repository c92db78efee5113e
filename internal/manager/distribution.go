package manager

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
)

// distributionEvents is the component that the events of ResourceDistributions come from.
const distributionEvents = "resourcedistribution-controller"

// copies implements resourcedistribution.Copies over a cache of its own, which holds the metadata of objects with the label of a copy, and
// nothing of any other object.
type copies struct {
	cached cache.Cache
	live   client.Reader
	kinds  []distribution.Kind
	// others tells how far the cache of the manager has come.
	others apply.Seen
}

// addCopies adds the cache of the copies to the manager; nothing if ResourceDistributions are off.
func (s *settings) addCopies(mgr ctrlmanager.Manager, live client.Reader) error {
	if !s.gates.Enabled(features.ResourceDistributionGate) || len(s.lacking[distributionEvents]) > 0 {
		return nil
	}
	labelled, err := labels.NewRequirement(keys.DistributedBy, selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("selecting copies: %w", err)
	}
	only := map[client.Object]cache.ByObject{}
	for _, kind := range s.distributed() {
		only[distribution.New(kind.Kind).(client.Object)] = cache.ByObject{Label: labels.NewSelector().Add(*labelled)}
	}
	cached, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultTransform: observe.Slim,
		ByObject: only,
	})
	if err != nil {
		return fmt.Errorf("making the cache of copies: %w", err)
	}
	s.copies = &copies{cached: cached, live: live, kinds: s.distributed(), others: apply.SeenBy(mgr.GetCache())}
	return mgr.Add(cached)
}

// distributed returns the kinds that are distributed.
func (s *settings) distributed() []distribution.Kind {
	kinds, _ := distribution.Served(list(s.DistributedKinds)) // the names were checked when the manager started
	return kinds
}

// metadataOf returns an empty object of a kind, of which only the metadata is read.
func metadataOf(kind distribution.Kind) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(kind.GroupVersionKind)
	return out
}

// Of implements resourcedistribution.Copies.
func (c *copies) Of(ctx context.Context, kind string, owner types.UID) ([]client.Object, error) {
	return metadata(ctx, c.cached, kind, client.MatchingLabels{keys.DistributedBy: string(owner)}, client.UnsafeDisableDeepCopy)
}

// Named implements resourcedistribution.Copies.
func (c *copies) Named(ctx context.Context, kind, name string) ([]client.Object, error) {
	return metadata(ctx, c.live, kind, client.MatchingFields{"metadata.name": name})
}

func metadata(ctx context.Context, from client.Reader, kind string, options ...client.ListOption) ([]client.Object, error) {
	found := &metav1.PartialObjectMetadataList{}
	if known, ok := distribution.Find(kind); ok {
		found.SetGroupVersionKind(known.GroupVersion().WithKind(kind + "List"))
	}
	if err := from.List(ctx, found, options...); err != nil {
		return nil, fmt.Errorf("listing the metadata of %ss: %w", kind, err)
	}
	out := make([]client.Object, len(found.Items))
	for i := range found.Items {
		out[i] = &found.Items[i]
	}
	return out, nil
}

// Watches implements resourcedistribution.Copies.
func (c *copies) Watches(
	changed func(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error),
) []loop.Watch {
	var out []loop.Watch
	for _, kind := range c.kinds {
		watch := loop.Affected[client.Object](metadataOf(kind), changed)
		watch.Cache = c.cached
		out = append(out, watch)
	}
	return out
}

// seen tells how far the cache of a kind has come.
func (c *copies) seen(ctx context.Context, kind schema.GroupVersionKind) (string, error) {
	i := slices.IndexFunc(c.kinds, func(k distribution.Kind) bool { return k.GroupVersionKind == kind })
	if i < 0 {
		return c.others(ctx, kind)
	}
	informer, err := c.cached.GetInformer(ctx, metadataOf(c.kinds[i]))
	if err != nil {
		return "", fmt.Errorf("finding the informer of %ss: %w", kind.Kind, err)
	}
	return apply.LastSeen(informer)
}
