package ephemeraljob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Jobs finds the EphemeralJobs that a Pod concerns.
type Jobs struct {
	// Reader is a cache.
	client.Reader
}

// OfPod returns the jobs, not yet over, for which the coming, going or changing of a Pod makes a difference. Most changes of Pods make none and cost no
// more than a comparison.
func (j Jobs) OfPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	if before != nil && after != nil && !changed(before, after) {
		return nil, nil
	}
	var versions []*corev1.Pod
	for _, p := range []*corev1.Pod{before, after} {
		if p != nil {
			versions = append(versions, p)
		}
	}
	var all v1alpha1.EphemeralJobList
	if err := j.List(ctx, &all, client.InNamespace(versions[0].Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing EphemeralJobs: %w", err)
	}
	var out []types.NamespacedName
	for i := range all.Items {
		if job := &all.Items[i]; !isOver(job) && concerns(job, versions) {
			out = append(out, client.ObjectKeyFromObject(job))
		}
	}
	return out, nil
}

func concerns(job *v1alpha1.EphemeralJob, versions []*corev1.Pod) bool {
	selector, err := selectorOf(job)
	for _, p := range versions {
		if ephemeral.Has(p, job.UID) || err == nil && selector.Matches(labels.Set(p.Labels)) {
			return true
		}
	}
	return false
}

// changed reports whether anything about the Pod has changed that a job looks at.
func changed(before, after *corev1.Pod) bool {
	return pod.IsActive(before) != pod.IsActive(after) || pod.IsFinished(before) != pod.IsFinished(after) || pod.IsScheduled(before) != pod.IsScheduled(after) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		len(before.Spec.EphemeralContainers) != len(after.Spec.EphemeralContainers) ||
		!equality.Semantic.DeepEqual(before.Status.EphemeralContainerStatuses, after.Status.EphemeralContainerStatuses)
}
