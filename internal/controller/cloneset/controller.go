package cloneset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// EventSource is the component that the controller's events come from.
const EventSource = "cloneset-controller"

// gather is how long to wait for more events of the same CloneSet: a rollout makes thousands, and one pass can answer many of them.
const gather = 15 * time.Millisecond

// Config is what the controller works with.
type Config struct {
	Options  Options
	Executor *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Workers is the number of CloneSets looked after at the same time.
	Workers int
	Now     func() time.Time
}

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	ctl, err := controller.New("cloneset", mgr, controller.Options{Reconciler: l, MaxConcurrentReconciles: c.Workers})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	for _, s := range []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.CloneSet{}, setEvents(l)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, ofOwner[*corev1.Pod]()),
		source.Kind(mgr.GetCache(), &corev1.PersistentVolumeClaim{}, ofOwner[*corev1.PersistentVolumeClaim]()),
	} {
		if err := ctl.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// NewLoop returns the reconcile of CloneSets, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.CloneSet, Survey] {
	return &loop.Loop[*v1beta1.CloneSet, Survey]{
		New:   func() *v1beta1.CloneSet { return &v1beta1.CloneSet{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, set *v1beta1.CloneSet) (Survey, error) {
			s, err := Observe(ctx, r, set, c.Now())
			s.Options, s.Taken = c.Options, c.Executor.Taken(set.UID)
			return Take(s), err
		},
		Plan: Plan,
		Report: func(v Survey, p plan.Plan, done apply.Outcome) *v1beta1.CloneSet {
			after := v.Set.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor, c.Now),
	}
}

// setEvents looks at a CloneSet whenever anything about it changes, and forgets it when it is gone.
func setEvents(l *loop.Loop[*v1beta1.CloneSet, Survey]) handler.TypedEventHandler[*v1beta1.CloneSet, reconcile.Request] {
	return handler.TypedFuncs[*v1beta1.CloneSet, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1beta1.CloneSet], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1beta1.CloneSet], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.Generation != e.ObjectNew.Generation || e.ObjectNew.DeletionTimestamp != nil {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)})
			} else {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, gather)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1beta1.CloneSet], _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			l.Forget(e.Object.UID)
		},
	}
}

// ofOwner leads from an object to the CloneSet that controls it.
func ofOwner[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	enqueue := func(object client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if key, ok := ownerKey(object); ok {
			q.AddAfter(reconcile.Request{NamespacedName: key}, gather)
		}
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q queue) {
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				return
			}
			enqueue(e.ObjectNew, q)
			if before, ok := ownerKey(e.ObjectOld); ok {
				if after, ok := ownerKey(e.ObjectNew); !ok || before != after {
					enqueue(e.ObjectOld, q)
				}
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q queue) { enqueue(e.Object, q) },
	}
}

func ownerKey(object client.Object) (types.NamespacedName, bool) {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil || controller.Kind != "CloneSet" {
		return types.NamespacedName{}, false
	}
	version, err := schema.ParseGroupVersion(controller.APIVersion)
	if err != nil || version.Group != v1beta1.GroupVersion.Group {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: controller.Name}, true
}
