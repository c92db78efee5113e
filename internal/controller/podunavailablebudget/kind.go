package podunavailablebudget

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// Scales reads the workloads of kinds that no cache has.
	Scales *observe.Scales
	// InForce says how long it takes until all requests on the Pods of a namespace are evaluated; nil where no wait is needed.
	InForce func(namespace string) time.Duration

	// permittedMore are the budgets for which this process has permitted more than their status said.
	permittedMore *apply.PerOwner[bool]
}

// Kind is the controller of PodUnavailableBudgets. The workloads of Kubernetes are watched only from the first budget on: most clusters
// have many of them, and some clusters have no budgets.
func Kind(o Options) loop.Kind[*v1beta1.PodUnavailableBudget, Snapshot, v1beta1.PodUnavailableBudgetStatus] {
	o.permittedMore = &apply.PerOwner[bool]{}
	return loop.Kind[*v1beta1.PodUnavailableBudget, Snapshot, v1beta1.PodUnavailableBudgetStatus]{
		Name:    "podunavailablebudget",
		Indexes: addIndex,
		Watches: func(cached observe.Reader) []loop.Watch {
			b := budgets{observe.Workloads{Reader: cached, Scales: o.Scales}}
			watches := []loop.Watch{
				loop.Affected(&v1beta1.PodUnavailableBudget{}, b.ofDeleted),
				loop.Affected(&corev1.Pod{}, b.ofPod),
				loop.Affected[client.Object](&appsv1beta1.CloneSet{}, b.ofWorkload),
				loop.Affected[client.Object](&appsv1beta1.StatefulSet{}, b.ofWorkload),
			}
			for _, native := range []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{},
				&corev1.ReplicationController{}} {
				watch := loop.Affected(native, b.ofWorkload)
				watch.Deferred = true
				watches = append(watches, watch)
			}
			return watches
		},
		Read:     o.read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1beta1.PodUnavailableBudget) *v1beta1.PodUnavailableBudgetStatus { return &o.Status },
		Forget:   o.permittedMore.Forget,
		Exact:    true, // what has been permitted since must not be lost
	}
}

// byBudget is the index of Pods by the budget that their annotations name.
const byBudget = "kruise.budget"

func addIndex(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, byBudget, func(object client.Object) []string {
		if name := disruption.Related(object.GetAnnotations()); name != "" {
			return []string{name}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing Pods by their budgets: %w", err)
	}
	return nil
}

// budgets finds the budgets that a change concerns.
type budgets struct{ observe.Workloads }

// ofPod returns the budgets whose numbers a change of a Pod may change, and those that may guard it from now on.
func (b budgets) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	if before != nil && after != nil && isSame(before, after) {
		return nil, nil
	}
	one := cmp.Or(after, before)
	all, err := b.Budgets(ctx, one.Namespace)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	candidate, _, err := candidateOf(ctx, b.Workloads, one)
	if err != nil {
		return nil, err
	}
	return observe.Keys(all, func(budget *v1beta1.PodUnavailableBudget) bool {
		for _, p := range []*corev1.Pod{before, after} {
			if p == nil {
				continue
			}
			candidate.Labels = p.Labels
			if disruption.Related(p.Annotations) == budget.Name || candidate.IsGuardedBy(budget) {
				return true
			}
		}
		return false
	}), nil
}

// isSame reports whether a change of a Pod changes neither the numbers of a budget nor which one guards it.
func isSame(a, b *corev1.Pod) bool {
	return a.ResourceVersion == b.ResourceVersion || pod.IsActive(a) == pod.IsActive(b) &&
		disruption.Available(a) == disruption.Available(b) &&
		disruption.Related(a.Annotations) == disruption.Related(b.Annotations) &&
		equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
}

// ofWorkload returns the budgets of a workload whose number of replicas changes, or that comes or goes.
func (b budgets) ofWorkload(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error) {
	var was, is observe.Workload
	if before != nil {
		was, _ = observe.WorkloadOf(before)
	}
	if after != nil {
		is, _ = observe.WorkloadOf(after)
	}
	if before != nil && after != nil && *was.Replicas == *is.Replicas && was.Deleting == is.Deleting {
		return nil, nil
	}
	if after == nil {
		is = was
	}
	all, err := b.Budgets(ctx, cmp.Or(after, before).GetNamespace())
	return observe.Keys(all, func(budget *v1beta1.PodUnavailableBudget) bool {
		if target, ok := disruption.TargetOf(budget); ok {
			return target == disruption.Reference{GroupKind: is.GroupKind, Name: is.Name}
		}
		selector := disruption.SelectorOf(budget)
		return selector != nil && selector.Matches(labels.Set(is.PodLabels))
	}), err
}

// ofDeleted returns the budgets that may guard the Pods of one that is deleted.
func (b budgets) ofDeleted(ctx context.Context, before, after *v1beta1.PodUnavailableBudget) ([]types.NamespacedName, error) {
	if after != nil {
		return nil, nil
	}
	all, err := b.Budgets(ctx, before.Namespace)
	return observe.Keys(all, func(budget *v1beta1.PodUnavailableBudget) bool { return budget.Name != before.Name }), err
}
