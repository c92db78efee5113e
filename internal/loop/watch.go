package loop

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// gather is how long to wait for more events of the same owner: a rollout makes thousands, and one pass can answer many of them.
const gather = 15 * time.Millisecond

// Queue is the work queue of a controller: the names of the owners to reconcile.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Watch is a type of objects whose events ask for passes.
type Watch struct {
	Object  client.Object
	Handler handler.EventHandler
	// Cache is where the objects are; nil for the cache of the manager.
	Cache cache.Cache
	// Deferred begins to watch when the first owner is seen: for objects of which a cluster has many, while it may have no owners.
	Deferred bool
	// For begins to watch when the first owner is seen for which it returns true: for objects of a kind that the cluster may not have. If
	// there is no such kind yet, it is looked for again every ten seconds.
	For func(owner client.Object) bool
}

// waiting is a source that has yet to start.
type waiting struct {
	source.Source
	wanted func(owner client.Object) bool
	once   *sync.Once
}

// later returns a source that waits for an owner.
func (w Watch) later(from source.Source) waiting {
	wanted := w.For
	if wanted == nil {
		wanted = func(client.Object) bool { return true }
	}
	return waiting{from, wanted, &sync.Once{}}
}

// Affected asks for passes over the owners that a change concerns. Before is nil for an object that was created, after for one that is
// gone. An object that took the name of another one while nobody watched is two changes.
func Affected[T client.Object](object T, find func(ctx context.Context, before, after T) ([]types.NamespacedName, error)) Watch {
	enqueue := func(ctx context.Context, before, after client.Object, q Queue) {
		owners, err := find(ctx, typed[T](before), typed[T](after))
		if err != nil {
			log.FromContext(ctx).Error(err, "Finding the owners that a change concerns")
			return
		}
		for _, owner := range owners {
			q.AddAfter(reconcile.Request{NamespacedName: owner}, gather)
		}
	}
	return Watch{Object: object, Handler: handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) { enqueue(ctx, nil, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) {
			if isOther(e) {
				enqueue(ctx, e.ObjectOld, nil, q)
				enqueue(ctx, nil, e.ObjectNew, q)
				return
			}
			enqueue(ctx, e.ObjectOld, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q Queue) { enqueue(ctx, e.Object, nil, q) },
	}}
}

// Owned asks for a pass over the owner of a kind that controls an object, or did before the change.
func Owned(object client.Object, owner schema.GroupKind) Watch {
	return Affected(object, func(_ context.Context, before, after client.Object) (out []types.NamespacedName, _ error) {
		if isResync(before, after) {
			return nil, nil
		}
		for _, version := range []client.Object{before, after} {
			if version != nil {
				if key, ok := ownerKey(version, owner); ok {
					out = append(out, key)
				}
			}
		}
		return out, nil // the queue adds what comes twice only once
	})
}

// owned is Owned, and remembers the names of Pods that are on their way out or gone, before the pass over their owner begins.
func (l *Loop[O, S, T]) owned(object client.Object, owner schema.GroupKind) Watch {
	watch := Owned(object, owner)
	if !isPod(object) {
		return watch
	}
	note := func(p client.Object) {
		if _, is := ownerKey(p, owner); is {
			l.Executor.NoteFormer(metav1.GetControllerOfNoCopy(p).UID, p.GetName())
		}
	}
	asks := watch.Handler
	watch.Handler = handler.Funcs{
		CreateFunc: asks.Create,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) {
			if isOther(e) {
				note(e.ObjectOld)
			}
			if e.ObjectNew.GetDeletionTimestamp() != nil {
				note(e.ObjectNew)
			}
			asks.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q Queue) {
			note(e.Object)
			asks.Delete(ctx, e, q)
		},
	}
	return watch
}

func isPod(object client.Object) bool {
	_, is := object.(*corev1.Pod)
	return is
}

func ownerKey(object client.Object, owner schema.GroupKind) (types.NamespacedName, bool) {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil || controller.Kind != owner.Kind {
		return types.NamespacedName{}, false
	}
	version, err := schema.ParseGroupVersion(controller.APIVersion)
	if err != nil || version.Group != owner.Group {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: controller.Name}, true
}

// Named asks for passes over the owners whose names follow from that of an object. Those that do not exist cost nothing.
func Named[T client.Object](object T, owners func(T) []string) Watch {
	return Affected(client.Object(object), func(_ context.Context, before, after client.Object) (out []types.NamespacedName, _ error) {
		if isResync(before, after) {
			return nil, nil
		}
		now := after
		if now == nil {
			now = before
		}
		for _, name := range owners(now.(T)) {
			out = append(out, types.NamespacedName{Namespace: now.GetNamespace(), Name: name})
		}
		return out, nil
	})
}

// isOther reports whether an update is the end of one object and the creation of another one of the same name. A cache tells it so when it
// missed the events between.
func isOther(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() }

// isResync reports whether an update is none.
func isResync(before, after client.Object) bool {
	return before != nil && after != nil && before.GetResourceVersion() == after.GetResourceVersion()
}

// owners asks for a pass whenever an owner changes, at once when its spec has, and calls forget when it is gone.
func owners[O client.Object](owner O, concerns func(before, after O) bool, forget func(O)) Watch {
	concerned := func(before, after client.Object) bool {
		return concerns == nil || concerns(typed[O](before), typed[O](after))
	}
	created := func(object client.Object, q Queue) {
		if concerned(nil, object) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
	}
	return Watch{Object: owner, Handler: handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q Queue) { created(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q Queue) {
			if isOther(e) {
				forget(typed[O](e.ObjectOld))
				created(e.ObjectNew, q)
				return
			}
			if !concerned(e.ObjectOld, e.ObjectNew) {
				return
			}
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectNew.GetDeletionTimestamp() != nil {
				q.Add(request)
			} else {
				q.AddAfter(request, gather)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ Queue) { forget(typed[O](e.Object)) },
	}}
}

// afterFirst starts sources when the first object of a type is seen that wants them.
func afterFirst(in cache.Cache, object client.Object, deferred []waiting) source.Source {
	return source.Func(func(ctx context.Context, q Queue) error {
		start := func(owner client.Object) {
			for _, w := range deferred {
				if w.wanted(owner) {
					w.once.Do(func() { _ = w.Start(ctx, q) }) // that of a cache returns at once, and tries until it can
				}
			}
		}
		return source.Kind(in, object, handler.EventHandler(handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, _ Queue) { start(e.Object) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ Queue) { start(e.ObjectNew) },
		})).Start(ctx, q)
	})
}

// typed returns an object as its type, and for none the nil of that type.
func typed[T client.Object](object client.Object) T {
	t, _ := object.(T)
	return t
}
