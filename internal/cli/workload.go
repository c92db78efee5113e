package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/past"
)

// isRollout reports whether an object is a Rollout.
func isRollout(o access.Object) bool { return o.Kind.GroupVersionKind.Kind == "Rollout" }

// workloadOf returns the workload of a Rollout; any other object is its own.
func (p *program) workloadOf(ctx context.Context, o access.Object) (access.Object, error) {
	if !isRollout(o) {
		return o, nil
	}
	var r rolloutsv1beta1.Rollout
	if err := o.Into(&r); err != nil {
		return access.Object{}, err
	}
	of := r.Spec.WorkloadRef
	kind, err := kinds.Of(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind())
	if err != nil {
		return access.Object{}, fmt.Errorf("the workload of %s: %w", o.Arg(), err)
	}
	workload, err := p.cluster.Get(ctx, kind, o.GetNamespace(), of.Name)
	if err != nil {
		return access.Object{}, fmt.Errorf("the workload of %s: %w", o.Arg(), err)
	}
	return workload, nil
}

// pods returns the Pods of a workload: those that it controls; for a Deployment and a UnitedDeployment, whose Pods are controlled by
// objects of its own, those that it selects.
func (p *program) pods(ctx context.Context, o access.Object) ([]corev1.Pod, error) {
	selector, err := p.selectorOf(o)
	if err != nil {
		return nil, err
	}
	reader, err := p.cluster.Client()
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	err = reader.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	if kind := o.Kind.GroupVersionKind.Kind; kind == "Deployment" || kind == "UnitedDeployment" {
		return list.Items, nil
	}
	return controlled(list.Items, o), nil
}

// broadcastJob is the kind whose Pods are found by a label of their own.
const broadcastJob = "BroadcastJob"

func (p *program) selectorOf(o access.Object) (labels.Selector, error) {
	if o.Kind.GroupVersionKind.Kind == broadcastJob {
		return labels.SelectorFromSet(labels.Set{keys.BroadcastJobControllerUID: string(o.GetUID())}), nil
	}
	return past.SelectorOf(o)
}

// controlled returns those Pods that a workload controls itself.
func controlled(pods []corev1.Pod, o access.Object) []corev1.Pod {
	var out []corev1.Pod
	for i := range pods {
		if metav1.IsControlledBy(&pods[i], o) {
			out = append(out, pods[i])
		}
	}
	return out
}
