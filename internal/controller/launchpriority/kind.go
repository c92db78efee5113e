package launchpriority

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/launch"
)

// EventSource is the component that the controller's events come from.
const EventSource = "container-launch-priority-controller"

// Config is what the controller works with.
type Config = loop.Config[loop.None]

// Add adds the controller to a manager, whose cache keeps the containers of Pods that are held, and of ConfigMaps those with the label of a
// barrier.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	return loop.Controller{Name: "launchpriority", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.OwnerEvents[*corev1.Pod](l.Forget), matters()),
		source.Kind(mgr.GetCache(), &corev1.ConfigMap{}, loop.NamedEvents(podOf)),
	}}.AddTo(mgr)
}

// matters lets through what can make a difference: of Pods whose containers may all start, only that they came and that they go.
func matters() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.Pod]) bool { return launch.IsHeld(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
			return launch.IsHeld(e.ObjectNew) && (!isCompleted(e.ObjectNew) || e.ObjectNew.DeletionTimestamp != nil)
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*corev1.Pod]) bool { return launch.IsHeld(e.Object) },
	}
}

func podOf(barrier *corev1.ConfigMap) []string {
	for _, ref := range barrier.OwnerReferences {
		if ref.Kind == "Pod" && ref.APIVersion == corev1.SchemeGroupVersion.String() {
			return []string{ref.Name}
		}
	}
	return nil
}

// NewLoop returns the reconcile of held Pods.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*corev1.Pod, Snapshot] {
	return &loop.Loop[*corev1.Pod, Snapshot]{
		New:   func() *corev1.Pod { return &corev1.Pod{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, p *corev1.Pod) (Snapshot, error) {
			return Observe(ctx, r, p, Found{Taken: c.Executor.TakenNames(p.UID), Live: live})
		},
		Plan:     Plan,
		Report:   func(s Snapshot, _ plan.Plan, _ apply.Outcome) *corev1.Pod { return s.Pod },
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor),
	}
}
