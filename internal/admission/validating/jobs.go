package validating

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/cron"
)

// BroadcastJob returns the handler that validates the templates of BroadcastJobs. All else is up to their schema.
func BroadcastJob(o Options) admission.Handler {
	return kind[v1beta1.BroadcastJob, *v1beta1.BroadcastJob]{
		hub:     v1beta1.GroupVersion,
		subject: func(job *v1beta1.BroadcastJob) any { return job.Spec.Template },
		validate: func(ctx context.Context, w write[v1beta1.BroadcastJob]) (found findings, _ error) {
			path := field.NewPath("spec", "template")
			found.broadcastTemplate(path, &w.new.Spec.Template)
			if len(found.errors) == 0 && o.Templates != nil {
				found = judge(ctx, o.Templates, w.namespace, w.rawTemplate(), path).findings()
			}
			return found, nil
		},
	}.handler()
}

// broadcastTemplate checks what a BroadcastJob asks of its template, beyond what is the same for every Pod template.
func (f *findings) broadcastTemplate(path *field.Path, template *corev1.PodTemplateSpec) {
	f.podsEnd(path, template)
	for _, label := range []string{keys.BroadcastJobName, keys.BroadcastJobControllerUID} {
		if value, set := template.Labels[label]; set {
			f.invalid(path.Child("metadata", "labels"), map[string]string{label: value},
				"label %s is reserved: the controller gives it to the Pods", label)
		}
	}
}

// podsEnd checks that the Pods of a job end.
func (f *findings) podsEnd(path *field.Path, template *corev1.PodTemplateSpec) {
	if policy := template.Spec.RestartPolicy; policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		f.invalid(path.Child("spec", "restartPolicy"), policy, "must be Never or OnFailure: the Pods of a job end")
	}
}

// AdvancedCronJob returns the handler that validates of AdvancedCronJobs of both versions what their schemas can't.
func AdvancedCronJob(o Options) admission.Handler {
	return kind[v1beta1.AdvancedCronJob, *v1beta1.AdvancedCronJob]{
		hub:     v1beta1.GroupVersion,
		subject: func(job *v1beta1.AdvancedCronJob) any { return job.Spec },
		validate: func(ctx context.Context, w write[v1beta1.AdvancedCronJob]) (findings, error) {
			found := rules[v1beta1.AdvancedCronJob](cronRules).ratcheted(w)
			switch given := &w.new.Spec.Template; {
			case w.old != nil:
				found.cronTemplateKept(&w.new.Spec, &w.old.Spec)
			case len(found.errors) == 0 && given.ImageListPullJobTemplate == nil:
				found = o.cronPodTemplate(ctx, w)
			}
			if w.older {
				found.join(rules[v1beta1.AdvancedCronJob](annotatedImageList).ratcheted(w))
			}
			return found, nil
		},
	}.handler()
}

// cronRules checks the schedule, and that there is one template.
func cronRules(found *findings, job *v1beta1.AdvancedCronJob) {
	path := field.NewPath("spec")
	found.schedule(path, &job.Spec)
	at, given := path.Child("template"), job.Spec.Template
	n := 0
	for _, there := range []bool{given.JobTemplate != nil, given.BroadcastJobTemplate != nil, given.ImageListPullJobTemplate != nil} {
		if there {
			n++
		}
	}
	switch {
	case n != 1:
		found.forbidden(at, "%d templates are given: set exactly one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate", n)
	case given.ImageListPullJobTemplate != nil:
		found.imageList(at.Child("imageListPullJobTemplate", "spec"), &given.ImageListPullJobTemplate.Spec)
	}
}

func (f *findings) schedule(path *field.Path, spec *v1beta1.AdvancedCronJobSpec) {
	at := path.Child("schedule")
	if err := cron.Check(spec.Schedule); err != nil {
		f.invalid(at, spec.Schedule, "%v", err)
	}
	if spec.TimeZone == nil {
		return
	}
	if err := cron.CheckZone(*spec.TimeZone); err != nil {
		f.invalid(path.Child("timeZone"), *spec.TimeZone, "%v", err)
	}
	if cron.NamesZone(spec.Schedule) {
		f.invalid(at, spec.Schedule, "names a time zone, and so does timeZone: name it in timeZone only")
	}
}

// annotatedImageList checks what v1alpha1 says in an annotation, which no schema sees: that a list of images is not pulled twice at the
// same time.
func annotatedImageList(found *findings, job *v1beta1.AdvancedCronJob) {
	if policy := job.Spec.ConcurrencyPolicy; job.Spec.Template.ImageListPullJobTemplate != nil && policy == v1beta1.AllowConcurrent {
		found.add(field.ErrorList{field.NotSupported(field.NewPath("spec", "concurrencyPolicy"), policy,
			[]v1beta1.ConcurrencyPolicy{v1beta1.ForbidConcurrent, v1beta1.ReplaceConcurrent})})
	}
}

// cronTemplateKept refuses to change what jobs are made of, but for the images that are to be pulled.
func (f *findings) cronTemplateKept(spec, old *v1beta1.AdvancedCronJobSpec) {
	now, was := spec.Template, old.Template
	if now.ImageListPullJobTemplate != nil && was.ImageListPullJobTemplate != nil {
		now.ImageListPullJobTemplate, was.ImageListPullJobTemplate = nil, nil
	}
	if !equality.Semantic.DeepEqual(now, was) {
		f.forbidden(field.NewPath("spec"), "updates are only allowed to schedule, concurrencyPolicy, successfulJobsHistoryLimit, "+
			"failedJobsHistoryLimit, startingDeadlineSeconds, timeZone, paused and the content of imageListPullJobTemplate: "+
			"create another AdvancedCronJob to make other jobs")
	}
}

// cronPodTemplate checks what a Job or a BroadcastJob is made of as these will be checked themselves: a mistake must not show in the
// middle of the night.
func (o Options) cronPodTemplate(ctx context.Context, w write[v1beta1.AdvancedCronJob]) findings {
	name, given := "jobTemplate", w.new.Spec.Template
	path := field.NewPath("spec", "template")
	var found findings
	if broadcast := given.BroadcastJobTemplate; broadcast != nil {
		name = "broadcastJobTemplate"
		found.broadcastTemplate(path.Child(name, "spec", "template"), &broadcast.Spec.Template)
	} else {
		found.podsEnd(path.Child(name, "spec", "template"), &given.JobTemplate.Spec.Template)
	}
	if len(found.errors) > 0 || o.Templates == nil {
		return found
	}
	template, _, _ := unstructured.NestedMap(w.raw, "spec", "template", name, "spec", "template")
	return judge(ctx, o.Templates, w.namespace, template, path.Child(name, "spec", "template")).findings()
}
