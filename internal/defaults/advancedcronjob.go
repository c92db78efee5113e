package defaults

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// How many finished jobs an AdvancedCronJob keeps where it does not say.
const (
	successfulJobsHistoryLimit = 3
	failedJobsHistoryLimit     = 1
)

// AdvancedCronJob fills in the defaults of job. old is what it was, or nil for a new one. Only Pod templates that are new are filled in;
// the rest of a job that is made gets its defaults then.
func AdvancedCronJob(job, old *v1beta1.AdvancedCronJob, o Options) {
	spec := &job.Spec
	policy := v1beta1.AllowConcurrent
	if spec.Template.ImageListPullJobTemplate != nil {
		policy = v1beta1.ReplaceConcurrent // how it pulls is in the schema
	}
	spec.ConcurrencyPolicy = cmp.Or(spec.ConcurrencyPolicy, policy)
	fill(&spec.SuccessfulJobsHistoryLimit, successfulJobsHistoryLimit)
	fill(&spec.FailedJobsHistoryLimit, failedJobsHistoryLimit)
	fill(&spec.Paused, false)
	var was v1beta1.CronJobTemplate
	if old != nil {
		was = old.Spec.Template
	}
	if now := spec.Template.JobTemplate; now != nil {
		var before *corev1.PodTemplateSpec
		if was.JobTemplate != nil {
			before = &was.JobTemplate.Spec.Template
		}
		jobTemplate(&now.Spec.Template, before, o)
	}
	if now := spec.Template.BroadcastJobTemplate; now != nil {
		var before *corev1.PodTemplateSpec
		if was.BroadcastJobTemplate != nil {
			before = &was.BroadcastJobTemplate.Spec.Template
		}
		jobTemplate(&now.Spec.Template, before, o)
	}
}
