package ephemeraljob

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Kind is the controller of EphemeralJobs.
func Kind() loop.Kind[*v1alpha1.EphemeralJob, State, v1alpha1.EphemeralJobStatus] {
	refused := &apply.Refused{Verb: plan.AddContainers, Concern: plan.Scale}
	return loop.Kind[*v1alpha1.EphemeralJob, State, v1alpha1.EphemeralJobStatus]{
		Name:    "ephemeraljob",
		Indexes: addIndex,
		Watches: func(cached observe.Reader) []loop.Watch {
			return []loop.Watch{loop.Affected(&corev1.Pod{}, jobs{cached}.ofPod)}
		},
		Read: func(ctx context.Context, r loop.Reads, job *v1alpha1.EphemeralJob) (State, error) {
			s, err := read(ctx, r, job)
			s.Refused = refused.Present(job.UID, r.Now)
			return Classify(s), err
		},
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1alpha1.EphemeralJob) *v1alpha1.EphemeralJobStatus { return &o.Status },
		Remember: func(v State, done apply.Outcome) { refused.Note(v.Job.UID, done, v.Now) },
		Exact:    true, // a finished job must not run again
	}
}

// jobs finds the EphemeralJobs that a change concerns.
type jobs struct{ client.Reader }

// ofPod returns the unfinished jobs for which a new, deleted or changed Pod makes a difference. Most changes make none and cost a
// comparison.
func (j jobs) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	if before != nil && after != nil && !changed(before, after) {
		return nil, nil
	}
	versions := slices.DeleteFunc([]*corev1.Pod{before, after}, func(p *corev1.Pod) bool { return p == nil })
	var list v1alpha1.EphemeralJobList
	all, err := observe.List(ctx, j, &list, &list.Items, client.InNamespace(versions[0].Namespace))
	return observe.Keys(all, func(job *v1alpha1.EphemeralJob) bool {
		selector, unreadable := selectorOf(job)
		return !isFinished(job) && slices.ContainsFunc(versions, func(p *corev1.Pod) bool {
			return ephemeral.Has(p, job.UID) || unreadable == nil && selector.Matches(labels.Set(p.Labels))
		})
	}), err
}

// changed reports whether anything about the Pod has changed that a job looks at.
func changed(before, after *corev1.Pod) bool {
	return pod.IsActive(before) != pod.IsActive(after) || pod.IsFinished(before) != pod.IsFinished(after) ||
		pod.IsScheduled(before) != pod.IsScheduled(after) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		len(before.Spec.EphemeralContainers) != len(after.Spec.EphemeralContainers) ||
		!equality.Semantic.DeepEqual(before.Status.EphemeralContainerStatuses, after.Status.EphemeralContainerStatuses)
}
