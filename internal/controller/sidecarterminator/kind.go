package sidecarterminator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/terminate"
)

// EventSource is the component that the controller's events come from.
const EventSource = "sidecarterminator-controller"

// Config is what the controller works with.
type Config = loop.Config[loop.None]

// Add adds the controller to a manager, whose cache keeps the whole of Pods that terminate.Marked says something of.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	return loop.Controller{Name: "sidecarterminator", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.OwnerEvents[*corev1.Pod](l.Forget), marked()),
		source.Kind(mgr.GetCache(), &v1beta1.ContainerRecreateRequest{}, loop.OwnedEvents[*v1beta1.ContainerRecreateRequest](corev1.SchemeGroupVersion.WithKind("Pod").GroupKind())),
	}}.AddTo(mgr)
}

// marked lets through Pods that there may be something to do for, and that they are gone.
func marked() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.Pod]) bool { return matters(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool { return matters(e.ObjectNew) },
		DeleteFunc: func(e event.TypedDeleteEvent[*corev1.Pod]) bool { return terminate.Marked(e.Object) },
	}
}

// NewLoop returns the reconcile of Pods with marked sidecars.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*corev1.Pod, Snapshot] {
	return &loop.Loop[*corev1.Pod, Snapshot]{
		New:   func() *corev1.Pod { return &corev1.Pod{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, p *corev1.Pod) (Snapshot, error) {
			return Observe(ctx, r, p, c.Now())
		},
		Plan:     Plan,
		Report:   func(s Snapshot, _ plan.Plan, _ apply.Outcome) *corev1.Pod { return s.Pod },
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor),
	}
}
