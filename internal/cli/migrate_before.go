package cli

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/migrate"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
)

// moveText shows what a move will do, and what would not go along. It returns an error for what stands against the move.
func (p *program) moveText(ctx context.Context, from, to access.Object, m move) error {
	if m.isNew {
		p.screen.Wrapf("", "%s is created with the template and the selector of %s.", to.Arg(), from.Arg())
	}
	if !m.create && !m.copied {
		p.screen.Wrapf("",
			"%d Pods move from %s to %s: never more than %d Pods are there on the way, and never fewer than %d are available for it.",
			max(m.goal.Target-replicasOf(to),
				0), from.Arg(), to.Arg(), m.goal.Total+m.limits.MaxSurge, max(m.goal.Total-m.limits.MaxUnavailable, 0))
	}
	at, err := from.Kind.Progress(from.Unstructured)
	if err != nil {
		return err
	}
	if at.Phase != progress.Done && m.isNew {
		return fmt.Errorf("%s is not at rest: %s; wait until its rollout is done: kubectl kruise status %s", from.Arg(), at.Message,
			from.Arg())
	}
	scaler, err := p.left(ctx, from, to)
	if err != nil {
		return err
	}
	if scaler != "" && !m.create && !m.copied {
		return fmt.Errorf("the HorizontalPodAutoscaler %s scales %s and would bring Pods back: delete it, and make one for %s afterwards",
			scaler, from.Arg(), to.Arg())
	}
	if !m.create && !m.copied {
		p.screen.Wrapf("", "In the end %s has %d replicas; delete it when nothing refers to it any more.", from.Arg(),
			m.goal.Total-m.goal.Target)
	}
	return nil
}

// left names what selects the Pods of one workload and not those of the other, and returns the autoscaler of the first.
func (p *program) left(ctx context.Context, from, to access.Object) (scaler string, err error) {
	before, after := labelsOf(from), labelsOf(to)
	reader, err := p.cluster.Client()
	if err != nil {
		return "", err
	}
	var services corev1.ServiceList
	var budgets policyv1.PodDisruptionBudgetList
	var scalers autoscalingv2.HorizontalPodAutoscalerList
	for _, list := range []client.ObjectList{&services, &budgets, &scalers} {
		if err := reader.List(ctx, list, client.InNamespace(from.GetNamespace())); err != nil {
			p.screen.Wrapf("", "Warning: what selects the Pods is not known in full: %v.", err)
		}
	}
	for i := range services.Items {
		if s := &services.Items[i]; migrate.Selects(s.Spec.Selector, before) && !migrate.Selects(s.Spec.Selector, after) {
			p.screen.Wrapf("", "Warning: Service %s selects %s, which Pods of %s do not have: it would lose them.", s.Name,
				labels.FormatLabels(s.Spec.Selector), to.Arg())
		}
	}
	for i := range budgets.Items {
		selector, err := metav1.LabelSelectorAsSelector(budgets.Items[i].Spec.Selector)
		if err == nil && selector.Matches(before) && !selector.Matches(after) {
			p.screen.Wrapf("", "Warning: PodDisruptionBudget %s selects %s, which Pods of %s do not have: it would not guard them.",
				budgets.Items[i].Name, selector, to.Arg())
		}
	}
	for i := range scalers.Items {
		ref := scalers.Items[i].Spec.ScaleTargetRef
		if schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == from.Kind.GroupKind() && ref.Name == from.GetName() {
			scaler = scalers.Items[i].Name
		}
	}
	return scaler, nil
}

// labelsOf returns the labels of the Pods of a workload.
func labelsOf(o access.Object) labels.Set {
	found, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	return found
}
