package defaults

import (
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
