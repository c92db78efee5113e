package observe

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HeldKinds has a cache hold kinds from when somebody first asks for one of them. So a cluster needs to serve, and the manager to have
// rights for, only those kinds of routes and workloads that Rollouts name.
type HeldKinds struct {
	cached cache.Cache
	live   client.Reader

	mu        sync.Mutex
	held      map[schema.GroupVersionKind]cache.Informer
	listeners []Listener
}

// Listener is told of an object of a kind that has come, changed or gone.
type Listener func(kind schema.GroupKind, name types.NamespacedName)

// NewHeldKinds returns HeldKinds that hold nothing yet.
func NewHeldKinds(cached cache.Cache, live client.Reader) *HeldKinds {
	return &HeldKinds{cached: cached, live: live, held: map[schema.GroupVersionKind]cache.Informer{}}
}

// Listen has a listener told of all kinds that are held, and of those that will be.
func (k *HeldKinds) Listen(l Listener) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listeners = append(k.listeners, l)
}

// Hold returns nil once the cache has all objects of a kind. Before the first objects of a kind are read, it asks the API server whether it
// serves the kind and lets the manager list it: a cache would wait for that without a word. While the cache is being filled, the error is
// ErrOutdated.
func (k *HeldKinds) Hold(ctx context.Context, kind schema.GroupVersionKind) error {
	k.mu.Lock()
	informer, held := k.held[kind]
	k.mu.Unlock()
	if !held {
		var err error
		if informer, err = k.start(ctx, kind); err != nil {
			return err
		}
	}
	if !informer.HasSynced() {
		return fmt.Errorf("the cache of %s is being filled: %w", kind.Kind, ErrOutdated)
	}
	return nil
}

func (k *HeldKinds) start(ctx context.Context, kind schema.GroupVersionKind) (cache.Informer, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := k.live.List(ctx, list, client.Limit(1)); err != nil {
		return nil, fmt.Errorf("looking for %s: %w", kind.Kind, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	informer, err := k.cached.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if before, held := k.held[kind]; held {
		return before, nil
	}
	if _, err := informer.AddEventHandler(k.handler(kind.GroupKind())); err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	k.held[kind] = informer
	return informer, nil
}

// Drop has the cache hold no kind any more that is not named. Who holds a kind is named before: a kind that is dropped between Hold and a
// read would be held again without a word to the listeners.
func (k *HeldKinds) Drop(ctx context.Context, named func(schema.GroupVersionKind) (bool, error)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind := range k.held {
		is, err := named(kind)
		if err != nil {
			return err
		}
		if is {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		if err := k.cached.RemoveInformer(ctx, object); err != nil {
			return fmt.Errorf("watching %s no more: %w", kind.Kind, err)
		}
		delete(k.held, kind)
	}
	return nil
}

// handler tells the listeners of what happens to objects of a kind.
func (k *HeldKinds) handler(kind schema.GroupKind) toolscache.ResourceEventHandler {
	tell := func(object any) {
		if gone, is := object.(toolscache.DeletedFinalStateUnknown); is {
			object = gone.Obj
		}
		of, is := object.(client.Object)
		if !is {
			return
		}
		k.mu.Lock()
		listeners := k.listeners
		k.mu.Unlock()
		for _, l := range listeners {
			l(kind, client.ObjectKeyFromObject(of))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell,
		UpdateFunc: func(before, after any) {
			was, is := before.(client.Object)
			now, are := after.(client.Object)
			if !is || !are || was.GetResourceVersion() != now.GetResourceVersion() {
				tell(after)
			}
		},
		DeleteFunc: tell,
	}
}
