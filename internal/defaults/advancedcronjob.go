package defaults

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// How many finished jobs an AdvancedCronJob keeps where it does not say.
const (
	successfulJobsHistoryLimit = 3
	failedJobsHistoryLimit     = 1
)

// AdvancedCronJob fills in the defaults of job. old is what it was, or nil for a new one.
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
	jobTemplates{spec.Template.JobTemplate, spec.Template.BroadcastJobTemplate}.fill(jobTemplates{was.JobTemplate, was.BroadcastJobTemplate}, o)
}

// jobTemplates are the templates of jobs that run Pods; nil where there is none.
type jobTemplates struct {
	job       *batchv1.JobTemplateSpec
	broadcast *v1beta1.BroadcastJobTemplateSpec
}

// fill fills in the defaults of Pod templates that are new. The rest of a job gets its own when it is made.
func (t jobTemplates) fill(old jobTemplates, o Options) {
	switch {
	case t.job == nil:
	case old.job == nil:
		jobTemplate(&t.job.Spec.Template, nil, o)
	default:
		jobTemplate(&t.job.Spec.Template, &old.job.Spec.Template, o)
	}
	switch {
	case t.broadcast == nil:
	case old.broadcast == nil:
		jobTemplate(&t.broadcast.Spec.Template, nil, o)
	default:
		jobTemplate(&t.broadcast.Spec.Template, &old.broadcast.Spec.Template, o)
	}
}
