package observe

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// NewInformer returns an informer whose readers, indexes and handlers see Pods where its store holds outlines of them (SlimPod).
func NewInformer(from cache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	if _, ok := kind.(*corev1.Pod); !ok {
		return cache.NewSharedIndexInformer(from, kind, resync, indexers)
	}
	informer := cache.NewSharedIndexInformer(from, kind, resync, ofPods(indexers))
	return podInformer{informer, newPodHandlers(informer)}
}

// podOf returns the Pod that an outline is of, and everything else as it is.
func podOf(object any) any {
	switch o := object.(type) {
	case *outline:
		return o.pod()
	case cache.DeletedFinalStateUnknown:
		return cache.DeletedFinalStateUnknown{Key: o.Key, Obj: podOf(o.Obj)}
	}
	return object
}

func podsOf(objects []any) []any {
	for at, object := range objects {
		objects[at] = podOf(object)
	}
	return objects
}

// ofPods returns indexers that are asked about Pods where there are outlines.
func ofPods(indexers cache.Indexers) cache.Indexers {
	out := cache.Indexers{}
	for name, index := range indexers {
		out[name] = func(object any) ([]string, error) { return index(podOf(object)) }
	}
	return out
}

type podInformer struct {
	cache.SharedIndexInformer
	handlers *podHandlers
}

// AddEventHandler adds a handler that is told of Pods.
func (i podInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.handlers.add(handler)
}

// AddEventHandlerWithResyncPeriod adds a handler that is told of Pods. It is told of unchanged ones when all others are.
func (i podInformer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.handlers.add(handler)
}

// AddEventHandlerWithOptions adds a handler that is told of Pods. It is told of unchanged ones when all others are.
func (i podInformer) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.handlers.add(handler)
}

// RemoveEventHandler has a handler be told of nothing any more.
func (i podInformer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	if r, is := handle.(*podRegistration); is && r.of == i.handlers {
		i.handlers.remove(r)
		return nil
	}
	return i.SharedIndexInformer.RemoveEventHandler(handle)
}

// AddIndexers adds indexes of Pods.
func (i podInformer) AddIndexers(indexers cache.Indexers) error {
	return i.SharedIndexInformer.AddIndexers(ofPods(indexers))
}

// GetStore returns the Pods.
func (i podInformer) GetStore() cache.Store { return i.GetIndexer() }

// GetIndexer returns the Pods with their indexes.
func (i podInformer) GetIndexer() cache.Indexer {
	return podIndexer{i.SharedIndexInformer.GetIndexer()}
}

type podIndexer struct{ cache.Indexer }

// List returns all Pods.
func (i podIndexer) List() []any { return podsOf(i.Indexer.List()) }

// Get returns the Pod with the key of an object.
func (i podIndexer) Get(object any) (any, bool, error) {
	found, ok, err := i.Indexer.Get(object)
	return podOf(found), ok, err
}

// GetByKey returns the Pod with a key.
func (i podIndexer) GetByKey(key string) (any, bool, error) {
	found, ok, err := i.Indexer.GetByKey(key)
	return podOf(found), ok, err
}

// Index returns the Pods that have a value of an index in common with an object.
func (i podIndexer) Index(name string, object any) ([]any, error) {
	found, err := i.Indexer.Index(name, object)
	return podsOf(found), err
}

// ByIndex returns the Pods with a value of an index.
func (i podIndexer) ByIndex(name, value string) ([]any, error) {
	found, err := i.Indexer.ByIndex(name, value)
	return podsOf(found), err
}

// AddIndexers adds indexes of Pods.
func (i podIndexer) AddIndexers(indexers cache.Indexers) error {
	return i.Indexer.AddIndexers(ofPods(indexers))
}
