package validating

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/cron"
)

// AdvancedCronJobOptions is what the validation of AdvancedCronJobs needs.
type AdvancedCronJobOptions struct {
	// Templates checks Pod templates; without it they are not looked into.
	Templates TemplateChecker
}

// AdvancedCronJob returns the handler that validates of AdvancedCronJobs of both versions what their schemas can't.
func AdvancedCronJob(o AdvancedCronJobOptions) admission.Handler {
	return kind[v1beta1.AdvancedCronJob, *v1beta1.AdvancedCronJob]{
		hub:     v1beta1.GroupVersion,
		subject: func(job *v1beta1.AdvancedCronJob) any { return job.Spec },
		validate: func(ctx context.Context, w write[v1beta1.AdvancedCronJob]) (findings, error) {
			found := findings{errors: ratcheted(cronRules, w.new, w.old)}
			switch given := &w.new.Spec.Template; {
			case w.old != nil:
				found.add(cronTemplateKept(&w.new.Spec, &w.old.Spec))
			case len(found.errors) == 0 && given.ImageListPullJobTemplate == nil:
				found = o.podTemplate(ctx, w)
			}
			if w.older {
				found.add(ratcheted(annotatedImageList, w.new, w.old))
			}
			return found, nil
		},
	}.handler()
}

// cronRules checks the schedule, and that there is one template.
func cronRules(job *v1beta1.AdvancedCronJob) field.ErrorList {
	path := field.NewPath("spec")
	errs := cronSchedule(&job.Spec, path)
	at, given := path.Child("template"), job.Spec.Template
	n := 0
	for _, there := range []bool{given.JobTemplate != nil, given.BroadcastJobTemplate != nil, given.ImageListPullJobTemplate != nil} {
		if there {
			n++
		}
	}
	switch {
	case n != 1:
		errs = append(errs, field.Forbidden(at, fmt.Sprintf(
			"%d templates are given: set exactly one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate", n)))
	case given.ImageListPullJobTemplate != nil:
		errs = append(errs, validateImageList(&given.ImageListPullJobTemplate.Spec, at.Child("imageListPullJobTemplate", "spec"))...)
	}
	return errs
}

func cronSchedule(spec *v1beta1.AdvancedCronJobSpec, path *field.Path) field.ErrorList {
	at := path.Child("schedule")
	var errs field.ErrorList
	if _, err := cron.Parse(spec.Schedule, ""); err != nil {
		errs = append(errs, field.Invalid(at, spec.Schedule, err.Error()))
	}
	if spec.TimeZone == nil {
		return errs
	}
	if err := cron.CheckZone(*spec.TimeZone); err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), *spec.TimeZone, err.Error()))
	}
	if cron.NamesZone(spec.Schedule) {
		errs = append(errs, field.Invalid(at, spec.Schedule, "names a time zone, and so does timeZone: name it in timeZone only"))
	}
	return errs
}

// annotatedImageList checks what v1alpha1 says in an annotation, which no schema sees: that a list of images is not pulled twice at the
// same time.
func annotatedImageList(job *v1beta1.AdvancedCronJob) field.ErrorList {
	policy := job.Spec.ConcurrencyPolicy
	if job.Spec.Template.ImageListPullJobTemplate == nil || policy != v1beta1.AllowConcurrent {
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath("spec", "concurrencyPolicy"), policy,
		[]v1beta1.ConcurrencyPolicy{v1beta1.ForbidConcurrent, v1beta1.ReplaceConcurrent})}
}

// cronTemplateKept refuses to change what jobs are made of, but for the images that are to be pulled.
func cronTemplateKept(spec, old *v1beta1.AdvancedCronJobSpec) field.ErrorList {
	now, was := spec.Template, old.Template
	if now.ImageListPullJobTemplate != nil && was.ImageListPullJobTemplate != nil {
		now.ImageListPullJobTemplate, was.ImageListPullJobTemplate = nil, nil
	}
	if equality.Semantic.DeepEqual(now, was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"),
		"updates are only allowed to schedule, concurrencyPolicy, successfulJobsHistoryLimit, failedJobsHistoryLimit, "+
			"startingDeadlineSeconds, timeZone, paused and the content of imageListPullJobTemplate: create another AdvancedCronJob to make other jobs")}
}

// podTemplate checks what a Job or a BroadcastJob is made of as these will be checked themselves: a mistake must not show in the middle of
// the night.
func (o AdvancedCronJobOptions) podTemplate(ctx context.Context, w write[v1beta1.AdvancedCronJob]) findings {
	name, given := "jobTemplate", w.new.Spec.Template
	path := field.NewPath("spec", "template")
	var found findings
	if broadcast := given.BroadcastJobTemplate; broadcast != nil {
		name = "broadcastJobTemplate"
		found.add(broadcastTemplate(&broadcast.Spec.Template, path.Child(name, "spec", "template")))
	} else {
		found.add(podsEnd(&given.JobTemplate.Spec.Template, path.Child(name, "spec", "template")))
	}
	if len(found.errors) > 0 || o.Templates == nil {
		return found
	}
	template, _, _ := unstructured.NestedMap(w.raw, "spec", "template", name, "spec", "template")
	return judge(ctx, o.Templates, w.namespace, template, path.Child(name, "spec", "template")).findings()
}
