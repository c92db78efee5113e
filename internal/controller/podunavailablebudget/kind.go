package podunavailablebudget

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// EventSource is the component that the controller's events come from.
const EventSource = "podunavailablebudget-controller"

// Options are what the controller is given at start-up.
type Options struct {
	// Scales reads the workloads of kinds that no cache has.
	Scales *observe.Scales
	// InForce is that of the Surveyor.
	InForce func(namespace string) time.Duration
}

// Config is what the controller works with.
type Config = loop.Config[Options]

// Add adds the controller to a manager. The workloads of Kubernetes are watched only from when there is a budget: most clusters have many, and some have
// no budgets.
func Add(mgr manager.Manager, c Config) error {
	if err := AddIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	watched := mgr.GetCache()
	l := NewLoop(c, observe.Reader{Reader: watched, Indexed: true}, observe.Reader{Reader: c.Live})
	affected := affected{observe.Workloads{Reader: observe.Reader{Reader: watched, Indexed: true}, Scales: c.Options.Scales}}
	natives := newDeferred(
		workloads(watched, &appsv1.Deployment{}, affected), workloads(watched, &appsv1.ReplicaSet{}, affected),
		workloads(watched, &appsv1.StatefulSet{}, affected), workloads(watched, &corev1.ReplicationController{}, affected),
	)
	return loop.Controller{Name: "podunavailablebudget", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(watched, &policyv1beta1.PodUnavailableBudget{}, natives.first(loop.OwnerEvents[*policyv1beta1.PodUnavailableBudget](l.Forget))),
		source.Kind(watched, &policyv1beta1.PodUnavailableBudget{}, loop.AffectedEvents(affected.byLeaving)),
		source.Kind(watched, &corev1.Pod{}, loop.AffectedEvents(affected.byPod)),
		workloads(watched, &v1beta1.CloneSet{}, affected),
		workloads(watched, &v1beta1.StatefulSet{}, affected),
		natives,
	}}.AddTo(mgr)
}

// Loop is the reconcile of PodUnavailableBudgets.
type Loop = loop.Loop[*policyv1beta1.PodUnavailableBudget, Snapshot]

// NewLoop returns the reconcile of PodUnavailableBudgets.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	statuses := apply.NewStatuses(c.Executor)
	statuses.Exact = true // what has been permitted since must not be lost
	return &Loop{
		New:     func() *policyv1beta1.PodUnavailableBudget { return &policyv1beta1.PodUnavailableBudget{} },
		Cache:   cached,
		Live:    live,
		Observe: Surveyor{Scales: c.Options.Scales, Now: c.Now, InForce: c.Options.InForce}.Observe,
		Plan:    Plan,
		Report: func(s Snapshot, _ plan.Plan, _ apply.Outcome) *policyv1beta1.PodUnavailableBudget {
			after := s.Budget.DeepCopy()
			after.Status = Status(s)
			return after
		},
		Executor: c.Executor,
		Statuses: statuses,
	}
}

// workloads is the source of what changes about workloads of a kind.
func workloads[T workload](watched cache.Cache, kind T, a affected) source.Source {
	return source.Kind(watched, kind, loop.AffectedEvents(changesOf[T](a)))
}

// deferred are sources that begin when the first budget is seen.
type deferred struct {
	sources []source.Source
	begin   chan struct{}
}

func newDeferred(sources ...source.Source) *deferred {
	return &deferred{sources: sources, begin: make(chan struct{}, 1)}
}

// Start returns at once.
func (d *deferred) Start(ctx context.Context, q loop.Queue) error {
	go func() {
		select {
		case <-ctx.Done():
		case <-d.begin:
			for _, s := range d.sources {
				// Starting a source of a cache does not fail; it tries until it can.
				_ = s.Start(ctx, q)
			}
		}
	}()
	return nil
}

// first returns a handler that begins with the first budget that it is told of, and hands on to another one.
func (d *deferred) first(next handler.TypedEventHandler[*policyv1beta1.PodUnavailableBudget, reconcile.Request]) handler.TypedEventHandler[*policyv1beta1.PodUnavailableBudget, reconcile.Request] {
	return handler.TypedFuncs[*policyv1beta1.PodUnavailableBudget, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*policyv1beta1.PodUnavailableBudget], q loop.Queue) {
			select {
			case d.begin <- struct{}{}:
			default: // they have begun, or are about to
			}
			next.Create(ctx, e, q)
		},
		UpdateFunc: next.Update,
		DeleteFunc: next.Delete,
	}
}

type name = types.NamespacedName

// workload is a kind that observe.WorkloadOf knows.
type workload interface {
	client.Object
	comparable
}

func workloadOf(object client.Object) *observe.Workload {
	w, known := observe.WorkloadOf(object)
	if !known {
		return nil
	}
	return &w
}

// affected finds the budgets that a change concerns.
type affected struct{ observe.Workloads }

// byPod returns the budgets whose numbers a change of a Pod may change, and those that may guard it from now on.
func (a affected) byPod(ctx context.Context, before, after *corev1.Pod) ([]name, error) {
	if !matters(before, after) {
		return nil, nil
	}
	one := after
	if one == nil {
		one = before
	}
	budgets, err := a.Budgets(ctx, one.Namespace)
	if err != nil || len(budgets) == 0 {
		return nil, err
	}
	chain, _, err := a.Chain(ctx, one)
	if err != nil {
		return nil, err
	}
	var owners []disruption.Reference
	for _, owner := range chain {
		owners = append(owners, disruption.Reference{GroupKind: owner.GroupKind(), Name: owner.Name})
	}
	return those(budgets, func(b *policyv1beta1.PodUnavailableBudget) bool {
		for _, p := range []*corev1.Pod{before, after} {
			if p == nil {
				continue
			}
			if disruption.Related(p.Annotations) == b.Name || (disruption.Candidate{Labels: p.Labels, Owners: owners}).IsGuardedBy(b) {
				return true
			}
		}
		return false
	}), nil
}

// matters reports whether a change of a Pod can change the numbers of a budget, or which one guards it.
func matters(before, after *corev1.Pod) bool {
	if before == nil || after == nil {
		return true
	}
	if before.ResourceVersion == after.ResourceVersion {
		return false
	}
	return pod.IsActive(before) != pod.IsActive(after) || disruption.Available(before) != disruption.Available(after) ||
		disruption.Related(before.Annotations) != disruption.Related(after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

// changesOf returns how a change of a workload of a kind leads to the budgets that it concerns.
func changesOf[T workload](a affected) func(ctx context.Context, before, after T) ([]name, error) {
	return func(ctx context.Context, before, after T) ([]name, error) {
		var none T
		var was, is *observe.Workload
		one := before
		if before != none {
			was = workloadOf(before)
		}
		if after != none {
			is, one = workloadOf(after), after
		}
		return a.byWorkload(ctx, one, was, is)
	}
}

// byWorkload returns the budgets of a workload whose number of replicas changes, or that comes or goes.
func (a affected) byWorkload(ctx context.Context, one client.Object, was, is *observe.Workload) ([]name, error) {
	if was != nil && is != nil && *was.Replicas == *is.Replicas && was.Deleting == is.Deleting {
		return nil, nil
	}
	budgets, err := a.Budgets(ctx, one.GetNamespace())
	if err != nil || len(budgets) == 0 {
		return nil, err
	}
	w := is
	if w == nil {
		w = was
	}
	itself := disruption.Reference{GroupKind: w.GroupKind, Name: w.Name}
	return those(budgets, func(b *policyv1beta1.PodUnavailableBudget) bool {
		if target, ok := disruption.TargetOf(b); ok {
			return target == itself
		}
		selector := disruption.SelectorOf(b)
		return selector != nil && selector.Matches(labels.Set(w.PodLabels))
	}), nil
}

// byLeaving returns the budgets that may guard the Pods of one that is deleted.
func (a affected) byLeaving(ctx context.Context, before, after *policyv1beta1.PodUnavailableBudget) ([]name, error) {
	if after != nil {
		return nil, nil
	}
	budgets, err := a.Budgets(ctx, before.Namespace)
	if err != nil {
		return nil, err
	}
	return those(budgets, func(b *policyv1beta1.PodUnavailableBudget) bool { return b.Name != before.Name }), nil
}

func those(budgets []*policyv1beta1.PodUnavailableBudget, concerned func(*policyv1beta1.PodUnavailableBudget) bool) []name {
	var out []name
	for _, b := range budgets {
		if concerned(b) {
			out = append(out, client.ObjectKeyFromObject(b))
		}
	}
	return out
}
