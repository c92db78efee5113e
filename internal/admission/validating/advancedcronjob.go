package validating

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/rules/cron"
)

// AdvancedCronJobOptions is what the validation of AdvancedCronJobs needs.
type AdvancedCronJobOptions struct {
	// Templates judges Pod templates; without it they are not looked into.
	Templates TemplateChecker
}

// maxCronName leaves room, in the 63 characters that the name of a job may have, for a dash and ten digits.
const maxCronName = 52

// AdvancedCronJob returns the handler that validates AdvancedCronJobs of both versions.
func AdvancedCronJob(o AdvancedCronJobOptions) admission.Handler {
	return onWritten(o.written)
}

func (o AdvancedCronJobOptions) written(ctx context.Context, asked admission.Request) admission.Response {
	c := cronChange{AdvancedCronJobOptions: o, namespace: asked.Namespace}
	var err error
	if c.new, c.raw, err = decodeCron(asked.Object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	if asked.Operation == admissionv1.Update {
		if c.old, _, err = decodeCron(asked.OldObject); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		// The finalizers of what is on its way out must come off, and what was stored before a rule was made can still be labelled and annotated.
		if c.new.DeletionTimestamp != nil || equality.Semantic.DeepEqual(c.new.Spec, c.old.Spec) {
			return admission.Allowed("")
		}
	}
	found := c.validate(ctx)
	if len(found.errors) > 0 {
		return invalid(asked, found.errors).WithWarnings(found.warnings...)
	}
	return admission.Allowed("").WithWarnings(found.warnings...)
}

// decodeCron returns what an object of either version means, and its template as it came.
func decodeCron(from runtime.RawExtension) (*v1beta1.AdvancedCronJob, map[string]any, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, nil, err
	}
	if hub := v1beta1.GroupVersion.String(); u.GetAPIVersion() != hub {
		if u, err = convert.Object(u, hub); err != nil {
			return nil, nil, err
		}
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	job, err := request.Decode[v1beta1.AdvancedCronJob](u)
	return job, template, err
}

// cronChange is an AdvancedCronJob to be written.
type cronChange struct {
	AdvancedCronJobOptions
	// old is nil for a new object.
	old, new  *v1beta1.AdvancedCronJob
	namespace string
	// raw is spec.template as it came, with all that this build does not know.
	raw map[string]any
}

func (c cronChange) validate(ctx context.Context) findings {
	spec := field.NewPath("spec")
	var found findings
	if c.old == nil {
		found.add(c.name())
	}
	found.add(c.schedule(spec))
	found.add(c.numbers(spec))
	found.add(c.policy(spec.Child("concurrencyPolicy")))
	template := spec.Child("template")
	if c.old != nil {
		found.add(c.unchangeable(spec))
	}
	if given := c.new.Spec.Template; len(found.errors) == 0 || c.old == nil {
		switch n := count(given); {
		case n != 1:
			found.errors = append(found.errors, field.Forbidden(template, fmt.Sprintf(
				"%d templates are given: set exactly one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate", n)))
		case given.ImageListPullJobTemplate != nil:
			found.add(validateImageList(&given.ImageListPullJobTemplate.Spec, template.Child("imageListPullJobTemplate", "spec")))
		case c.old == nil:
			found = c.podTemplate(ctx, found, template)
		}
	}
	return found
}

func count(t v1beta1.CronJobTemplate) int {
	n := 0
	for _, given := range []bool{t.JobTemplate != nil, t.BroadcastJobTemplate != nil, t.ImageListPullJobTemplate != nil} {
		if given {
			n++
		}
	}
	return n
}

func (c cronChange) name() field.ErrorList {
	name, at := c.new.Name, field.NewPath("metadata", "name")
	if name == "" { // generated, and checked by the API server
		return nil
	}
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(at, name, message))
	}
	if len(name) > maxCronName {
		errs = append(errs, field.Invalid(at, name, fmt.Sprintf(
			"must be no more than %d characters, because the names of its jobs are made of it, a dash and ten digits", maxCronName)))
	}
	return errs
}

func (c cronChange) schedule(spec *field.Path) field.ErrorList {
	at, zoneAt := spec.Child("schedule"), spec.Child("timeZone")
	schedule, zone := c.new.Spec.Schedule, c.new.Spec.TimeZone
	var errs field.ErrorList
	if schedule == "" {
		errs = append(errs, field.Invalid(at, schedule, "say when, such as \"0 3 * * *\" or @daily"))
	} else if _, err := cron.Parse(schedule, ""); err != nil {
		errs = append(errs, field.Invalid(at, schedule, err.Error()))
	}
	if zone == nil {
		return errs
	}
	if err := cron.CheckZone(*zone); err != nil {
		errs = append(errs, field.Invalid(zoneAt, *zone, err.Error()))
	}
	if cron.NamesZone(schedule) {
		errs = append(errs, field.Invalid(at, schedule, "names a time zone, and so does timeZone: name it in timeZone only"))
	}
	return errs
}

func (c cronChange) numbers(spec *field.Path) field.ErrorList {
	return slices.Concat(
		notNegative(c.new.Spec.SuccessfulJobsHistoryLimit, spec.Child("successfulJobsHistoryLimit")),
		notNegative(c.new.Spec.FailedJobsHistoryLimit, spec.Child("failedJobsHistoryLimit")),
		notNegative(c.new.Spec.StartingDeadlineSeconds, spec.Child("startingDeadlineSeconds")),
	)
}

func (c cronChange) policy(at *field.Path) field.ErrorList {
	policies := []v1beta1.ConcurrencyPolicy{v1beta1.AllowConcurrent, v1beta1.ForbidConcurrent, v1beta1.ReplaceConcurrent}
	if c.new.Spec.Template.ImageListPullJobTemplate != nil {
		policies = policies[1:]
	}
	if policy := c.new.Spec.ConcurrencyPolicy; policy != "" && !slices.Contains(policies, policy) {
		return field.ErrorList{field.NotSupported(at, policy, policies)}
	}
	return nil
}

// unchangeable refuses to change what jobs are made of, but for the images that are to be pulled.
func (c cronChange) unchangeable(spec *field.Path) field.ErrorList {
	now, was := c.new.Spec.Template, c.old.Spec.Template
	if now.ImageListPullJobTemplate != nil && was.ImageListPullJobTemplate != nil {
		now.ImageListPullJobTemplate, was.ImageListPullJobTemplate = nil, nil
	}
	if equality.Semantic.DeepEqual(now, was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(spec, "updates are only allowed to schedule, concurrencyPolicy, successfulJobsHistoryLimit, failedJobsHistoryLimit, "+
		"startingDeadlineSeconds, timeZone, paused and the content of imageListPullJobTemplate: create another AdvancedCronJob to make other jobs")}
}

// podTemplate checks what a Job or a BroadcastJob is made of as these will be checked themselves: a mistake must not show in the middle of the night.
func (c cronChange) podTemplate(ctx context.Context, found findings, path *field.Path) findings {
	name := "jobTemplate"
	if broadcast := c.new.Spec.Template.BroadcastJobTemplate; broadcast != nil {
		name = "broadcastJobTemplate"
		found.add(broadcastJobSpec(&broadcast.Spec, path.Child(name, "spec")))
	} else if policy := c.new.Spec.Template.JobTemplate.Spec.Template.Spec.RestartPolicy; policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		found.errors = append(found.errors, field.Invalid(path.Child(name, "spec", "template", "spec", "restartPolicy"), policy,
			"must be Never or OnFailure: the Pods of a job end"))
	}
	if len(found.errors) > 0 || c.Templates == nil {
		return found
	}
	template, _, _ := unstructured.NestedMap(c.raw, name, "spec", "template")
	verdict := judge(ctx, c.Templates, c.namespace, template, path.Child(name, "spec", "template"))
	found.add(verdict.Errors)
	found.warnings = verdict.Warnings
	return found
}
