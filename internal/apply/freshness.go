package apply

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// lateAfter is how long the cache may lag behind our own writes before the API server is read instead.
const lateAfter = 10 * time.Second

// Freshness says whether the cache shows all that was written for an owner.
type Freshness int

const (
	// Stale means that it does not yet: the pass has to wait.
	Stale Freshness = iota
	// Fresh means that it does.
	Fresh
	// Unknown means that the cache can't be trusted, as it is too late or the outcome of a write is unknown: the pass has to read live.
	Unknown
)

// Seen tells how far the cache of a kind has come: the last resource version that it holds, empty when it does not know.
type Seen func(ctx context.Context, kind schema.GroupVersionKind) (string, error)

// SeenBy returns how far the informers of a cache have come.
func SeenBy(informers cache.Cache) Seen {
	return func(ctx context.Context, kind schema.GroupVersionKind) (string, error) {
		informer, err := informers.GetInformerForKind(ctx, kind)
		if runtime.IsNotRegisteredError(err) { // of a kind that is not known as a type
			untyped := &unstructured.Unstructured{}
			untyped.SetGroupVersionKind(kind)
			informer, err = informers.GetInformer(ctx, untyped)
		}
		if err != nil {
			return "", fmt.Errorf("finding the informer of %s: %w", kind.Kind, err)
		}
		return LastSeen(informer)
	}
}

// LastSeen returns how far an informer has come.
func LastSeen(informer cache.Informer) (string, error) {
	shared, ok := informer.(interface{ GetStore() toolscache.Store })
	if !ok {
		return "", fmt.Errorf("the informer is a %T, which does not tell how far it has come", informer)
	}
	return shared.GetStore().LastStoreSyncResourceVersion(), nil
}

// writes is what was written for an owner and the cache may not show yet: the newest version of each kind, so that no decision is based on
// a cache that is older than our own writes. Unlike a count of expected events it can't leak: versions only grow, and events may be missed
// or merged.
type writes struct {
	versions map[schema.GroupVersionKind]string
	// since is when the newest of them was written: a pass may take longer than a cache may, above all where the API server is slow, and
	// then a list of the whole namespace is the last thing that it needs.
	since time.Time
	// unknown means that a write may or may not have happened.
	unknown bool
	// readLive means that the owner was read live since this process began.
	readLive bool
}

// noteVersion notes that a write for the owner resulted in this version, or that a live read showed it.
func (e *Executor) noteVersion(owner types.UID, kind schema.GroupVersionKind, version string) {
	if version == "" {
		return
	}
	e.owners.Do(owner, func(m *memory) {
		if m.writes.versions == nil {
			m.writes.versions = map[schema.GroupVersionKind]string{}
		}
		if newest, ok := m.writes.versions[kind]; !ok || isOlder(newest, version) {
			m.writes.versions[kind], m.writes.since = version, e.Now()
		}
	})
}

// noteUnknown notes that a write for the owner has an unknown outcome.
func (e *Executor) noteUnknown(owner types.UID) {
	e.owners.Do(owner, func(m *memory) { m.writes.unknown = true })
}

// NoteReadLive notes that the owner was read live: no outcome is unknown any more, and the cache has as long again to catch up.
func (e *Executor) NoteReadLive(owner types.UID) {
	e.owners.Do(owner, func(m *memory) { m.writes.unknown, m.writes.readLive, m.writes.since = false, true, e.Now() })
}

// WasReadLive reports whether the owner was read live since this process began.
func (e *Executor) WasReadLive(owner types.UID) (was bool) {
	e.owners.Peek(owner, func(m *memory) { was = m.writes.readLive })
	return was
}

// HasToReadLive reports whether the owner was not read live yet since this process began. The next pass then does.
func (e *Executor) HasToReadLive(owner types.UID) (now bool) {
	e.owners.Do(owner, func(m *memory) {
		now = !m.writes.readLive
		m.writes.unknown = m.writes.unknown || now
	})
	return now
}

// Freshness says whether the owner can be read from the cache now.
func (e *Executor) Freshness(ctx context.Context, owner plan.Object) (fresh Freshness, err error) {
	fresh = Fresh
	e.owners.Peek(owner.GetUID(), func(m *memory) {
		for kind, version := range m.writes.versions {
			var seen string
			if seen, err = e.Seen(ctx, kind); err != nil {
				return
			}
			if !isOlder(seen, version) {
				delete(m.writes.versions, kind)
			}
		}
		late := len(m.writes.versions) > 0 && e.Now().Sub(m.writes.since) >= lateAfter
		switch {
		case late:
			countLate(owner)
			fresh = Unknown
		case m.writes.unknown:
			fresh = Unknown
		case len(m.writes.versions) > 0:
			fresh = Stale
		}
	})
	return fresh, err
}

// IsBehind reports whether the cache of a kind has not come as far as a version.
func (e *Executor) IsBehind(ctx context.Context, kind schema.GroupVersionKind, version string) (bool, error) {
	seen, err := e.Seen(ctx, kind)
	return isOlder(seen, version), err
}

// Tracked returns a reader that notes the newest versions that it reads, so that a cache which is older than what was read live is not
// believed afterwards: a decision that went back in time could spend a budget twice.
func (e *Executor) Tracked(owner types.UID, live client.Reader) client.Reader {
	return &trackedReader{Reader: live, executor: e, owner: owner}
}

type trackedReader struct {
	client.Reader
	executor *Executor
	owner    types.UID
}

// List notes the version of the newest object rather than that of the list, which a cache of a quiet kind would reach only with the next
// bookmark.
func (r *trackedReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, r.note)
}

// Get notes the version of the object.
func (r *trackedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, object, options...); err != nil {
		return err
	}
	return r.note(object)
}

func (r *trackedReader) note(item runtime.Object) error {
	object, err := meta.Accessor(item)
	if err != nil {
		return fmt.Errorf("reading the version of %T: %w", item, err)
	}
	return r.executor.note(r.owner, item, object.GetResourceVersion())
}

// wrote notes the version of an object that was written for an owner.
func (e *Executor) wrote(owner, object plan.Object) error {
	return e.note(owner.GetUID(), object, object.GetResourceVersion())
}

func (e *Executor) note(owner types.UID, object runtime.Object, version string) error {
	kind, err := apiutil.GVKForObject(object, e.Scheme)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", object, err)
	}
	e.noteVersion(owner, kind, version)
	return nil
}

// isOlder reports whether version a is older than b. A version that can't be read is older than any.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order < 0
}
