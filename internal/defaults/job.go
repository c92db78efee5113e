package defaults

import (
	"cmp"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// BroadcastJob fills in the defaults of job. old is what it was, or nil for a new one.
func BroadcastJob(job, old *v1beta1.BroadcastJob, o Options) {
	spec := &job.Spec
	fill(&spec.Parallelism, intstr.FromInt32(math.MaxInt32))
	fillText(&spec.CompletionPolicy.Type, v1beta1.AlwaysComplete)
	fillText(&spec.FailurePolicy.Type, v1beta1.FailurePolicyTypeFailFast)
	if old == nil {
		jobTemplate(&spec.Template, nil, o)
	} else {
		jobTemplate(&spec.Template, &old.Spec.Template, o)
	}
}

// jobTemplate fills in the defaults of a new template. By them Pods run for ever, which no job allows: so the user has to say what becomes
// of a container that fails.
func jobTemplate(template, old *corev1.PodTemplateSpec, o Options) {
	if o.TemplateNoDefaults || old != nil && equality.Semantic.DeepEqual(template, old) {
		return
	}
	PodTemplate(template, o)
}

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
