package scoping

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
)

// calm is how long the leader waits for further changes of SidecarSets before it looks at them. None of them is urgent: what has to be sent is
// seen to before.
const calm = time.Second

// Add makes the leader narrow the configuration when SidecarSets have changed, and repair it when somebody else has changed it. The manager's
// cache must hold no other configuration.
func (k *Keeper) Add(mgr manager.Manager) error {
	c, err := controller.New("podscope", mgr, controller.Options{Reconciler: k})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	sources := []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.SidecarSet{}, after[*v1beta1.SidecarSet](k.Configuration, calm), selectsOtherwise()),
		source.Kind(mgr.GetCache(), &admissionv1.MutatingWebhookConfiguration{}, after[*admissionv1.MutatingWebhookConfiguration](k.Configuration, 0)),
	}
	if k.Markers {
		sources = append(sources, source.Kind(mgr.GetCache(), &v1alpha1.PodProbeMarker{}, after[*v1alpha1.PodProbeMarker](k.Configuration, 0), markedOtherwise()))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// after asks for a look at the configuration some time after an event.
func after[T client.Object](configuration string, pause time.Duration) handler.TypedEventHandler[T, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	ask := func(q queue) {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: configuration}}, pause)
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { ask(q) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { ask(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { ask(q) },
	}
}

// selectsOtherwise lets through SidecarSets that have come, gone, or select other Pods than before.
func selectsOtherwise() predicate.TypedPredicate[*v1beta1.SidecarSet] {
	return predicate.TypedFuncs[*v1beta1.SidecarSet]{UpdateFunc: func(e event.TypedUpdateEvent[*v1beta1.SidecarSet]) bool {
		was, had := scope.OfSidecarSet(e.ObjectOld)
		is, has := scope.OfSidecarSet(e.ObjectNew)
		return had != has || !was.Equal(is)
	}}
}

// markedOtherwise lets through PodProbeMarkers that have come or gone: what they select does not change.
func markedOtherwise() predicate.TypedPredicate[*v1alpha1.PodProbeMarker] {
	return predicate.TypedFuncs[*v1alpha1.PodProbeMarker]{UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.PodProbeMarker]) bool {
		was, had := scope.OfPodProbeMarker(e.ObjectOld)
		is, has := scope.OfPodProbeMarker(e.ObjectNew)
		return had != has || !was.Equal(is)
	}}
}

// Reconcile brings the configuration in line with the SidecarSets.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	done, err := k.keep(ctx, nil)
	switch {
	case apierrors.IsNotFound(err):
		// It is made anew by those who keep the certificates, and seen here then.
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: calm}, nil
	case err != nil:
		return reconcile.Result{}, err
	case done.next.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(calm, done.next.Sub(k.Now()))}, nil
}
