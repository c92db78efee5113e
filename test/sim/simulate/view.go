package simulate

import (
	"context"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// View is a cache of the cluster, as informers keep one: each kind lags behind on its own, and moves only when told to. What it returns may
// be shared and must not be changed.
type View struct {
	cluster *Cluster
	indexes indexes
	kinds   map[schema.GroupVersionKind]*stream
}

// stream is how far the cache of a kind has come.
type stream struct {
	// next is the number of events taken so far.
	next     int
	revision int64
	objects  *shelf
}

// Event is what a cache tells its controller: an object that came, changed, or went.
type Event struct {
	Key Key
	// Old is nil for an object that came, New for one that went.
	Old, New client.Object
	// IsInitial means that the object was there when the cache started.
	IsInitial bool
}

// NewView returns a cache that knows nothing yet.
func (c *Cluster) NewView() *View {
	return &View{cluster: c, indexes: indexes{}, kinds: map[schema.GroupVersionKind]*stream{}}
}

// Watch starts the cache of the kind of an object, with what there is now.
func (v *View) Watch(object client.Object) []Event {
	kind := v.cluster.KeyOf(object).Kind
	v.kinds[kind] = &stream{objects: &shelf{kind: kind}}
	events := v.Relist(kind)
	for i := range events {
		events[i].IsInitial = true
	}
	return events
}

// WatchPast starts the cache of the kind of an object with what there was before its last events: that of a replica that begins to lead
// while its watch lags behind, or that is answered by an API server that does.
func (v *View) WatchPast(object client.Object, events int) []Event {
	kind := v.cluster.KeyOf(object).Kind
	now := v.Watch(object)
	stored := v.cluster.shelves.of(kind)
	if stored == nil || events == 0 || len(stored.changes) == 0 {
		return now
	}
	s := v.kinds[kind]
	s.next = max(0, len(stored.changes)-events)
	for _, i := range slices.Backward(stored.changes[s.next:]) {
		change := &v.cluster.history[i]
		s.set(change.Key, change.Before)
	}
	s.revision = v.cluster.history[stored.changes[s.next]].Revision - 1
	past := make([]Event, len(s.objects.keys))
	for i, key := range s.objects.keys {
		past[i] = Event{Key: key, New: s.objects.objects[i], IsInitial: true}
	}
	return past
}

// IndexField adds an index.
func (v *View) IndexField(_ context.Context, object client.Object, field string, keys client.IndexerFunc) error {
	kind := v.cluster.KeyOf(object).Kind
	if v.indexes[kind] == nil {
		v.indexes[kind] = map[string]client.IndexerFunc{}
	}
	v.indexes[kind][field] = keys
	return nil
}

// Lagging returns the kinds that have events to deliver, sorted.
func (v *View) Lagging() []schema.GroupVersionKind {
	var lagging []schema.GroupVersionKind
	for _, stored := range v.cluster.shelves {
		if s := v.kinds[stored.kind]; s != nil && s.next < len(stored.changes) {
			lagging = append(lagging, stored.kind)
		}
	}
	return lagging
}

// Deliver takes over the next event of a kind that lags behind.
func (v *View) Deliver(kind schema.GroupVersionKind) Event {
	s := v.kinds[kind]
	change := v.cluster.history[v.cluster.shelves.of(kind).changes[s.next]]
	s.next++
	s.revision = change.Revision
	return s.set(change.Key, change.After)
}

// Relist brings a kind up to date at once, as after a broken watch: objects that came and went in between are never heard of.
func (v *View) Relist(kind schema.GroupVersionKind) []Event {
	s := v.kinds[kind]
	s.revision = v.cluster.revision
	stored := v.cluster.shelves.of(kind)
	if stored == nil {
		return nil
	}
	s.next = len(stored.changes)
	keys := slices.Concat(stored.keys, s.objects.keys)
	slices.SortFunc(keys, compareKeys)
	var events []Event
	for _, key := range slices.Compact(keys) {
		if now := stored.get(key); s.objects.get(key) != now {
			events = append(events, s.set(key, now))
		}
	}
	return events
}

func (s *stream) set(key Key, now client.Object) Event {
	event := Event{Key: key, Old: s.objects.get(key), New: now}
	s.objects.set(key, now)
	return event
}

// Seen returns how far the cache of a kind has come.
func (v *View) Seen(_ context.Context, kind schema.GroupVersionKind) (string, error) {
	s := v.kinds[kind]
	if s == nil {
		return "", nil
	}
	return strconv.FormatInt(s.revision, 10), nil
}

// Look returns a Pass over an owner at the present state of the cache.
func (v *View) Look(number int, owner types.NamespacedName) *Pass {
	p := &Pass{Number: number, Owner: owner, Time: v.cluster.now, Seen: map[schema.GroupVersionKind]int64{}}
	for kind, s := range v.kinds {
		p.Seen[kind] = s.revision
	}
	return p
}

// Get reads a copy of a cached object.
func (v *View) Get(_ context.Context, name client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	key := v.cluster.KeyOf(out)
	key.Namespace, key.Name = name.Namespace, name.Name
	if s := v.kinds[key.Kind]; s != nil {
		if cached := s.objects.get(key); cached != nil {
			fill(out, copyOf(cached))
			return nil
		}
	}
	return apierrors.NewNotFound(resourceOf(key), key.Name)
}

// List reads cached objects, which are shared where the options say so.
func (v *View) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind, err := itemKind(list, v.cluster.scheme)
	if err != nil {
		return err
	}
	s := v.kinds[kind]
	if s == nil {
		return nil
	}
	return collect(s.objects.all(), v.indexes[kind], list, options)
}

func labelsOf(object client.Object) labels.Set { return object.GetLabels() }
