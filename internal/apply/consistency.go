package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// lateAfter is how long the cache may lag behind our own writes before the world is read live instead.
const lateAfter = 10 * time.Second

// Sight says how an owner may be looked at.
type Sight int

const (
	// Wait means that the cache does not show all of our own writes yet.
	Wait Sight = iota
	// Cached means that the cache is as new as our own writes.
	Cached
	// Live means that the cache can't be trusted: it is too late, or the outcome of a write is unknown.
	Live
)

// Seen tells how far the cache of a kind has come: the last resource version that it holds, empty when it does not know.
type Seen func(ctx context.Context, kind schema.GroupVersionKind) (string, error)

// Consistency remembers, for each owner, the newest version that was written of each kind, so that no decision is based on a cache that is
// older than our own writes. Unlike a count of expected events it can't leak: versions only grow, and events may be missed or merged.
type Consistency struct {
	seen    Seen
	now     func() time.Time
	mu      sync.Mutex
	written map[types.UID]*writes
}

type writes struct {
	versions map[schema.GroupVersionKind]string
	since    time.Time
	// inDoubt means that a write may or may not have happened.
	inDoubt bool
}

// NewConsistency returns an empty memory over a cache.
func NewConsistency(seen Seen, now func() time.Time) *Consistency {
	return &Consistency{seen: seen, now: now, written: map[types.UID]*writes{}}
}

// SeenBy returns how far the informers of a cache have come.
func SeenBy(informers cache.Cache) Seen {
	return func(ctx context.Context, kind schema.GroupVersionKind) (string, error) {
		informer, err := informers.GetInformerForKind(ctx, kind)
		if err != nil {
			return "", fmt.Errorf("finding the informer of %s: %w", kind.Kind, err)
		}
		shared, ok := informer.(interface{ GetStore() toolscache.Store })
		if !ok {
			return "", fmt.Errorf("the informer of %s is a %T, which does not tell how far it has come", kind.Kind, informer)
		}
		return shared.GetStore().LastStoreSyncResourceVersion(), nil
	}
}

// Wrote notes that a write on behalf of the owner resulted in this version, or that a live read showed it.
func (c *Consistency) Wrote(owner types.UID, kind schema.GroupVersionKind, version string) {
	if version == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.of(owner)
	if newest, ok := w.versions[kind]; !ok || isOlder(newest, version) {
		w.versions[kind] = version
	}
}

// Doubt notes that a write on behalf of the owner has an unknown outcome.
func (c *Consistency) Doubt(owner types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(owner).inDoubt = true
}

// of returns the entry of an owner; the caller holds the lock.
func (c *Consistency) of(owner types.UID) *writes {
	w := c.written[owner]
	if w == nil {
		w = &writes{versions: map[schema.GroupVersionKind]string{}, since: c.now()}
		c.written[owner] = w
	}
	return w
}

// Forget drops what is known of an owner that is gone.
func (c *Consistency) Forget(owner types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, owner)
}

// Sight says how the owner may be looked at now.
func (c *Consistency) Sight(ctx context.Context, owner plan.Object) (Sight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.written[owner.GetUID()]
	if w == nil {
		return Cached, nil
	}
	for kind, version := range w.versions {
		seen, err := c.seen(ctx, kind)
		if err != nil {
			return Wait, err
		}
		if !isOlder(seen, version) {
			delete(w.versions, kind)
		}
	}
	late := len(w.versions) > 0 && c.now().Sub(w.since) >= lateAfter
	switch {
	case late:
		countLate(owner)
		return Live, nil
	case w.inDoubt:
		return Live, nil
	case len(w.versions) > 0:
		return Wait, nil
	default:
		delete(c.written, owner.GetUID())
		return Cached, nil
	}
}

// Looked notes that the owner has been looked at live: what was in doubt is known now, and the cache has as long again to catch up.
func (c *Consistency) Looked(owner types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.written[owner]; w != nil {
		w.inDoubt, w.since = false, c.now()
	}
}

// LookingLive returns a reader that notes the newest versions that it reads, so that a cache which is older than what was seen live is not
// believed afterwards: a decision that went back in time could spend a budget twice.
func (c *Consistency) LookingLive(owner types.UID, live client.Reader, scheme *runtime.Scheme) client.Reader {
	return &notingReader{Reader: live, consistency: c, owner: owner, scheme: scheme}
}

type notingReader struct {
	client.Reader
	consistency *Consistency
	owner       types.UID
	scheme      *runtime.Scheme
}

// List notes the version of the newest object rather than that of the list, which a cache of a quiet kind would reach only with the next
// bookmark.
func (r *notingReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, r.note)
}

// Get notes the version of the object.
func (r *notingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, object, options...); err != nil {
		return err
	}
	return r.note(object)
}

func (r *notingReader) note(item runtime.Object) error {
	kind, err := apiutil.GVKForObject(item, r.scheme)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", item, err)
	}
	object, err := meta.Accessor(item)
	if err != nil {
		return fmt.Errorf("reading the version of %T: %w", item, err)
	}
	r.consistency.Wrote(r.owner, kind, object.GetResourceVersion())
	return nil
}

// isOlder reports whether version a is older than b. A version that can't be read is older than any.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order < 0
}
