package webhookconfig

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/certs"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
)

const (
	// narrowDelay is how long the leader waits for further changes of SidecarSets. None is urgent: admission has sent what has to be sent.
	narrowDelay = time.Second
	// budgetDelay is how long it waits for further budgets before it has the evictions in their namespaces sent.
	budgetDelay = 50 * time.Millisecond
	// crdDelay is how long events of several CRDs are gathered, which are reconciled together.
	crdDelay = 100 * time.Millisecond
	// resyncPeriod is how often all parts are reconciled when nothing is known to have changed.
	resyncPeriod = time.Minute
	// firstRetry is the wait after an error, which doubles until maxRetry. It is the longest wait until a broken watch is opened again,
	// too.
	firstRetry, maxRetry = 500 * time.Millisecond, 30 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func enqueue(q queue, delay time.Duration, part string) {
	q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: part}}, delay)
}

// Add runs the reconciler on every manager. The manager's cache must hold no other webhook configurations than those of the manifests.
func (r *Reconciler) Add(mgr manager.Manager) error {
	c, err := controller.New("webhookconfig", mgr, controller.Options{
		Reconciler: r, NeedLeaderElection: new(false),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, maxRetry),
	})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	sources := []source.Source{
		source.Kind(mgr.GetCache(), &admissionv1.MutatingWebhookConfiguration{},
			always[*admissionv1.MutatingWebhookConfiguration](func(q queue) { enqueue(q, 0, mutatingPart) })),
		source.Kind(mgr.GetCache(), &admissionv1.ValidatingWebhookConfiguration{},
			always[*admissionv1.ValidatingWebhookConfiguration](func(q queue) { enqueue(q, 0, validatingPart) })),
		source.Func(r.resync), source.Func(r.watchCRDs), source.Func(r.watchSecret),
	}
	if r.Pods {
		sources = append(sources, source.Kind(mgr.GetCache(), &v1beta1.SidecarSet{},
			always[*v1beta1.SidecarSet](r.leaderEnqueues(narrowDelay, mutatingPart)), changes(scope.OfSidecarSet)))
	}
	if r.Pods && r.Spreads {
		sources = append(sources, source.Kind(mgr.GetCache(), &v1beta1.WorkloadSpread{},
			always[*v1beta1.WorkloadSpread](r.leaderEnqueues(narrowDelay, mutatingPart)), neverUpdated[*v1beta1.WorkloadSpread]()))
	}
	if r.Pods && r.Markers {
		sources = append(sources, source.Kind(mgr.GetCache(), &v1alpha1.PodProbeMarker{},
			always[*v1alpha1.PodProbeMarker](r.leaderEnqueues(0, mutatingPart)), changes(scope.OfPodProbeMarker)))
	}
	if r.Pods && r.PodStates {
		sources = append(sources, source.Kind(mgr.GetCache(), &v1beta1.PersistentPodState{},
			always[*v1beta1.PersistentPodState](r.leaderEnqueues(narrowDelay, mutatingPart)), newTopology()))
	}
	if r.Workloads != nil {
		sources = append(sources, source.Kind(mgr.GetCache(), &rolloutsv1beta1.Rollout{},
			always[*rolloutsv1beta1.Rollout](r.leaderEnqueues(budgetDelay, mutatingPart)), otherWorkload()))
	}
	if r.Evictions {
		sources = append(sources, source.Kind(mgr.GetCache(), &policyv1beta1.PodUnavailableBudget{},
			always[*policyv1beta1.PodUnavailableBudget](r.leaderEnqueues(budgetDelay, validatingPart)),
			neverUpdated[*policyv1beta1.PodUnavailableBudget]()))
	}
	for _, s := range sources {
		if err := c.Watch(startOnly(s)); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// startOnly starts a source without waiting until the cache is in sync, which means the informers of all controllers: kinds that are stored
// in v1alpha1 can only be listed once a manager converts them, and no manager serves before this controller has run.
func startOnly(s source.Source) source.Source {
	return source.Func(func(ctx context.Context, q queue) error { return s.Start(ctx, q) })
}

// leaderEnqueues enqueues a part for an event of what only the leader follows.
func (r *Reconciler) leaderEnqueues(delay time.Duration, part string) func(queue) {
	return func(q queue) {
		if r.isLeader() {
			enqueue(q, delay, part)
		}
	}
}

// always calls a function for every event.
func always[T client.Object](f func(queue)) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { f(q) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { f(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { f(q) },
	}
}

// neverUpdated drops all updates.
func neverUpdated[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(event.TypedUpdateEvent[T]) bool { return false }}
}

// changes drops updates of objects that select the same Pods as before.
func changes[T client.Object](interestOf func(T) (scope.Interest, bool)) predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
		was, had := interestOf(e.ObjectOld)
		is, has := interestOf(e.ObjectNew)
		return had != has || !was.Equal(is)
	}}
}

// newTopology drops updates of PersistentPodStates that neither begin to require a place nor cease to.
func newTopology() predicate.TypedPredicate[*v1beta1.PersistentPodState] {
	requires := func(state *v1beta1.PersistentPodState) bool { return state.Spec.RequiredPersistentTopology != nil }
	return predicate.TypedFuncs[*v1beta1.PersistentPodState]{UpdateFunc: func(e event.TypedUpdateEvent[*v1beta1.PersistentPodState]) bool {
		was, is := e.ObjectOld, e.ObjectNew
		return requires(was) != requires(is) || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil)
	}}
}

// otherWorkload drops updates of Rollouts that name the same workload as before.
func otherWorkload() predicate.TypedPredicate[*rolloutsv1beta1.Rollout] {
	return predicate.TypedFuncs[*rolloutsv1beta1.Rollout]{UpdateFunc: func(e event.TypedUpdateEvent[*rolloutsv1beta1.Rollout]) bool {
		return e.ObjectOld.Spec.WorkloadRef != e.ObjectNew.Spec.WorkloadRef
	}}
}

// resync enqueues all parts at the start, every minute, and when this manager begins to lead.
func (r *Reconciler) resync(ctx context.Context, q queue) error {
	go wait.JitterUntilWithContext(ctx, func(context.Context) { enqueue(q, 0, allParts) }, resyncPeriod, 0.1, true)
	go func() {
		select {
		case <-ctx.Done():
		case <-r.Elected:
			enqueue(q, 0, allParts)
		}
	}()
	return nil
}

// watchCRDs watches each CRD by its name: the cache would hold the CRDs of the whole cluster.
func (r *Reconciler) watchCRDs(ctx context.Context, q queue) error {
	for _, name := range r.CRDs {
		crd := types.NamespacedName{Name: name}
		r.watchOne(ctx, &apiextensionsv1.CustomResourceDefinitionList{}, crd, func() { enqueue(q, crdDelay, crdsPart) })
	}
	return nil
}

// watchSecret watches the stored CA. A folder is looked at once a minute.
func (r *Reconciler) watchSecret(ctx context.Context, q queue) error {
	if store, ok := r.Issuer.Store.(certs.SecretStore); ok {
		r.watchOne(ctx, &corev1.SecretList{}, store.Name, func() { enqueue(q, 0, allParts) })
	}
	return nil
}

// watchOne calls a function for every event of one object until the context ends. What a broken watch misses, the next resync finds.
func (r *Reconciler) watchOne(ctx context.Context, list client.ObjectList, name types.NamespacedName, changed func()) {
	go wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		w, err := r.Client.Watch(ctx, list, client.MatchingFields{"metadata.name": name.Name}, client.InNamespace(name.Namespace))
		if err != nil {
			log.FromContext(ctx).V(1).Info("Watching failed", "object", name, "reason", err.Error())
			return
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			if e.Type == watch.Error {
				return
			}
			changed()
		}
	}, maxRetry, 1, true)
}
