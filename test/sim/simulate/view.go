package simulate

import (
	"context"
	"maps"
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
	objects  map[Key]client.Object
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
	v.kinds[kind] = &stream{objects: map[Key]client.Object{}}
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
	s, changes := v.kinds[kind], v.cluster.byKind[kind]
	s.next = max(0, len(changes)-events)
	if s.next == len(changes) {
		return now
	}
	for _, i := range slices.Backward(changes[s.next:]) {
		change := &v.cluster.history[i]
		s.set(change.Key, change.Before)
	}
	s.revision = v.cluster.history[changes[s.next]].Revision - 1
	var past []Event
	for _, key := range slices.SortedFunc(maps.Keys(s.objects), compareKeys) {
		past = append(past, Event{Key: key, New: s.objects[key], IsInitial: true})
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
	for _, kind := range v.cluster.kinds() {
		if s := v.kinds[kind]; s != nil && s.next < len(v.cluster.byKind[kind]) {
			lagging = append(lagging, kind)
		}
	}
	return lagging
}

// Deliver takes over the next event of a kind that lags behind.
func (v *View) Deliver(kind schema.GroupVersionKind) Event {
	s := v.kinds[kind]
	change := v.cluster.history[v.cluster.byKind[kind][s.next]]
	s.next++
	s.revision = change.Revision
	return s.set(change.Key, change.After)
}

// Relist brings a kind up to date at once, as after a broken watch: objects that came and went in between are never heard of.
func (v *View) Relist(kind schema.GroupVersionKind) []Event {
	s := v.kinds[kind]
	s.next = len(v.cluster.byKind[kind])
	s.revision = v.cluster.revision
	keys := map[Key]bool{}
	for key := range v.cluster.objects {
		if key.Kind == kind {
			keys[key] = true
		}
	}
	for key := range s.objects {
		keys[key] = true
	}
	var events []Event
	for _, key := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		if now := v.cluster.objects[key]; s.objects[key] != now {
			events = append(events, s.set(key, now))
		}
	}
	return events
}

func (s *stream) set(key Key, now client.Object) Event {
	event := Event{Key: key, Old: s.objects[key], New: now}
	if now == nil {
		delete(s.objects, key)
	} else {
		s.objects[key] = now
	}
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
	if s := v.kinds[key.Kind]; s != nil && s.objects[key] != nil {
		fill(out, copyOf(s.objects[key]))
		return nil
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
	return collect(sorted(s.objects, kind), v.indexes[kind], list, options)
}

func labelsOf(object client.Object) labels.Set { return object.GetLabels() }
