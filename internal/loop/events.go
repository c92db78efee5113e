package loop

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// gather is how long to wait for more events of the same owner: a rollout makes thousands, and one pass can answer many of them.
const gather = 15 * time.Millisecond

// Queue is where a controller keeps the names of the owners that it is to look at.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// OwnerEvents asks for a pass whenever anything about an owner changes, at once when it is its spec, and calls forget when it is gone.
func OwnerEvents[O client.Object](forget func(types.UID)) handler.TypedEventHandler[O, reconcile.Request] {
	return handler.TypedFuncs[O, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[O], q Queue) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[O], q Queue) {
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectNew.GetDeletionTimestamp() != nil {
				q.Add(request)
			} else {
				q.AddAfter(request, gather)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[O], _ Queue) {
			forget(e.Object.GetUID())
		},
	}
}

// OwnedEvents leads from an object to the owner of a kind that controls it, or did before the change.
func OwnedEvents[T client.Object](owner schema.GroupKind) handler.TypedEventHandler[T, reconcile.Request] {
	enqueue := func(object client.Object, q Queue) {
		if key, ok := ownerKey(object, owner); ok {
			q.AddAfter(reconcile.Request{NamespacedName: key}, gather)
		}
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q Queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q Queue) {
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				return
			}
			enqueue(e.ObjectNew, q)
			if before, ok := ownerKey(e.ObjectOld, owner); ok {
				if after, ok := ownerKey(e.ObjectNew, owner); !ok || before != after {
					enqueue(e.ObjectOld, q)
				}
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q Queue) { enqueue(e.Object, q) },
	}
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

// NamedEvents leads from an object to the owners that its own name leads to. Owners that do not exist cost nothing: nobody looks after them.
func NamedEvents[T client.Object](owners func(T) []string) handler.TypedEventHandler[T, reconcile.Request] {
	enqueue := func(object T, q Queue) {
		for _, name := range owners(object) {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}, gather)
		}
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q Queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q Queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				enqueue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q Queue) { enqueue(e.Object, q) },
	}
}

// AffectedEvents leads from a change to the owners that it concerns, which find has to look up: before is nil for an object that came, after for
// one that went.
func AffectedEvents[T client.Object](find func(ctx context.Context, before, after T) ([]types.NamespacedName, error)) handler.TypedEventHandler[T, reconcile.Request] {
	var none T
	enqueue := func(ctx context.Context, before, after T, q Queue) {
		owners, err := find(ctx, before, after)
		if err != nil {
			log.FromContext(ctx).Error(err, "Finding whom a change concerns")
			return
		}
		for _, owner := range owners {
			q.AddAfter(reconcile.Request{NamespacedName: owner}, gather)
		}
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], q Queue) { enqueue(ctx, none, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q Queue) {
			enqueue(ctx, e.ObjectOld, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q Queue) { enqueue(ctx, e.Object, none, q) },
	}
}
