package rollout

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// What a job has where the workload does not say.
const (
	defaultTimeoutSeconds = 300
	backoffLimit          = 1
	ttlSeconds            = 600
)

// createPullJobs returns the writes that make the jobs. A job whose name another object has is left out: somebody pulls something else
// by that name.
func (w *Workload) createPullJobs(v verdict, t Tuning) plan.Chain {
	var chain plan.Chain
	for _, job := range w.newPullJobs(v, t) {
		exists := slices.ContainsFunc(w.PullJobs, func(j *v1beta1.ImagePullJob) bool { return j.Name == job.Name && j.DeletionTimestamp == nil })
		if exists || slices.Contains(w.Taken, job.Name) {
			continue
		}
		chain = append(chain, plan.Action{
			Verb: plan.Create, Concern: plan.Tidy, After: job, Optional: true,
			What: "pull " + job.Spec.Image, Why: "Pods will be updated to it",
			Event: eventCreatedImagePullJob, EventMessage: "created ImagePullJob " + job.Name + " for image " + job.Spec.Image,
			FailedEvent: eventFailedCreateImagePullJob,
		})
	}
	return chain
}

// newPullJobs returns the jobs that pull the images, one for each container, in the order of the containers.
func (w *Workload) newPullJobs(v verdict, t Tuning) []*v1beta1.ImagePullJob {
	update := w.History.Update.Name
	labels := maps.Clone(v.template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[keys.RevisionHash] = revision.ShortHash(update)
	template := v1beta1.ImagePullJobTemplate{
		PodSelector: &v1beta1.ImagePullJobPodSelector{LabelSelector: outdated(w.Selector, update)},
		Parallelism: t.Parallelism,
		PullPolicy:  &v1beta1.PullPolicy{TimeoutSeconds: ptr.To(int32(defaultTimeoutSeconds)), BackoffLimit: ptr.To(int32(backoffLimit))},
		CompletionPolicy: v1beta1.CompletionPolicy{
			Type: v1beta1.AlwaysComplete, TTLSecondsAfterFinished: ptr.To(int32(ttlSeconds)),
		},
		SandboxConfig:   &v1beta1.SandboxConfig{Labels: maps.Clone(labels), Annotations: maps.Clone(v.template.Annotations)},
		ImagePullPolicy: v1beta1.PullIfNotPresent,
	}
	if t.Parallelism == nil {
		template.Parallelism = ptr.To(intstr.FromInt32(1))
	}
	if t.TimeoutSeconds != nil {
		template.PullPolicy.TimeoutSeconds = t.TimeoutSeconds
	}
	for _, secret := range v.template.Spec.ImagePullSecrets {
		template.PullSecrets = append(template.PullSecrets, secret.Name)
	}
	jobs := make([]*v1beta1.ImagePullJob, 0, len(v.containers))
	for _, c := range v.containers {
		jobs = append(jobs, &v1beta1.ImagePullJob{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.Object.GetNamespace(), Name: strings.ToLower(update + "-" + c.Name), Labels: maps.Clone(labels),
				OwnerReferences: []metav1.OwnerReference{w.Owner()},
			},
			Spec: v1beta1.ImagePullJobSpec{Image: c.Image, ImagePullJobTemplate: *template.DeepCopy()},
		})
	}
	return jobs
}

// longestLabel is the most that the value of a label can have.
const longestLabel = 63

// outdated selects the Pods of a workload that are not at a revision yet, whose label may hold its name or its hash.
func outdated(selector *metav1.LabelSelector, update string) metav1.LabelSelector {
	out := *selector.DeepCopy()
	values := []string{revision.ShortHash(update)}
	if len(update) <= longestLabel && update != values[0] {
		values = append([]string{update}, values...)
	}
	out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: appsv1.ControllerRevisionHashLabelKey, Operator: metav1.LabelSelectorOpNotIn, Values: values,
	})
	return out
}
