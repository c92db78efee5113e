package podunavailablebudget

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

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
	return those(budgets, func(b *v1beta1.PodUnavailableBudget) bool {
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
	return those(budgets, func(b *v1beta1.PodUnavailableBudget) bool {
		if target, ok := disruption.TargetOf(b); ok {
			return target == itself
		}
		selector := disruption.SelectorOf(b)
		return selector != nil && selector.Matches(labels.Set(w.PodLabels))
	}), nil
}

// byLeaving returns the budgets that may guard the Pods of one that is deleted.
func (a affected) byLeaving(ctx context.Context, before, after *v1beta1.PodUnavailableBudget) ([]name, error) {
	if after != nil {
		return nil, nil
	}
	budgets, err := a.Budgets(ctx, before.Namespace)
	if err != nil {
		return nil, err
	}
	return those(budgets, func(b *v1beta1.PodUnavailableBudget) bool { return b.Name != before.Name }), nil
}

func those(budgets []*v1beta1.PodUnavailableBudget, concerned func(*v1beta1.PodUnavailableBudget) bool) []name {
	var out []name
	for _, b := range budgets {
		if concerned(b) {
			out = append(out, client.ObjectKeyFromObject(b))
		}
	}
	return out
}
