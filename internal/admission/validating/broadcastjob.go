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
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// BroadcastJobOptions is what the validation of BroadcastJobs needs.
type BroadcastJobOptions struct {
	// Templates judges Pod templates; without it they are not looked into.
	Templates TemplateChecker
}

// BroadcastJob returns the handler that validates BroadcastJobs of both versions, which have the same fields.
func BroadcastJob(o BroadcastJobOptions) admission.Handler {
	return onWritten(o.written)
}

func (o BroadcastJobOptions) written(ctx context.Context, asked admission.Request) admission.Response {
	job, template, err := decodeBroadcastJob(asked.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	var old *v1beta1.BroadcastJob
	if asked.Operation == admissionv1.Update {
		if old, _, err = decodeBroadcastJob(asked.OldObject); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		// The finalizers of what is on its way out must come off, and what was stored before a rule was made can still be labelled and annotated.
		if job.DeletionTimestamp != nil || equality.Semantic.DeepEqual(job.Spec, old.Spec) {
			return admission.Allowed("")
		}
	}
	spec := field.NewPath("spec")
	var found findings
	if old == nil {
		found.add(broadcastJobName(job.Name))
	}
	found.add(broadcastJobSpec(&job.Spec, spec))
	if len(found.errors) == 0 && o.Templates != nil && (old == nil || !equality.Semantic.DeepEqual(old.Spec.Template, job.Spec.Template)) {
		verdict := judge(ctx, o.Templates, asked.Namespace, template, spec.Child("template"))
		found.add(verdict.Errors)
		found.warnings = verdict.Warnings
	}
	if len(found.errors) > 0 {
		return invalid(asked, found.errors).WithWarnings(found.warnings...)
	}
	return admission.Allowed("").WithWarnings(found.warnings...)
}

// decodeBroadcastJob returns an object of either version, and its template as it came.
func decodeBroadcastJob(from runtime.RawExtension) (*v1beta1.BroadcastJob, map[string]any, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, nil, err
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	job, err := request.Decode[v1beta1.BroadcastJob](u)
	return job, template, err
}

// broadcastJobName checks the name of a new job, which becomes the value of a label of its Pods.
func broadcastJobName(name string) field.ErrorList {
	if name == "" { // generated, and checked by the API server
		return nil
	}
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, message))
	}
	return errs
}

// broadcastJobSpec checks all of a job's spec but what is the same for every Pod template.
func broadcastJobSpec(spec *v1beta1.BroadcastJobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, err := budget.Scaled(spec.Parallelism, 100, budget.Up); err != nil {
		errs = append(errs, field.Invalid(path.Child("parallelism"), spec.Parallelism, err.Error()))
	}
	errs = append(errs, completionPolicy(&spec.CompletionPolicy, path.Child("completionPolicy"))...)
	at := path.Child("failurePolicy")
	policies := []v1beta1.FailurePolicyType{v1beta1.FailurePolicyTypeContinue, v1beta1.FailurePolicyTypeFailFast, v1beta1.FailurePolicyTypePause}
	if kind := spec.FailurePolicy.Type; kind != "" && !slices.Contains(policies, kind) {
		errs = append(errs, field.NotSupported(at.Child("type"), kind, policies))
	}
	errs = append(errs, notNegative(&spec.FailurePolicy.RestartLimit, at.Child("restartLimit"))...)
	template := path.Child("template")
	if policy := spec.Template.Spec.RestartPolicy; policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		errs = append(errs, field.Invalid(template.Child("spec", "restartPolicy"), policy, "must be Never or OnFailure: the Pods of a job end"))
	}
	for _, label := range []string{keys.BroadcastJobName, keys.BroadcastJobControllerUID} {
		if value, set := spec.Template.Labels[label]; set {
			errs = append(errs, field.Invalid(template.Child("metadata", "labels"), map[string]string{label: value},
				fmt.Sprintf("label %s is reserved: the controller gives it to the Pods", label)))
		}
	}
	return errs
}

func completionPolicy(policy *v1beta1.BroadcastJobCompletionPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	types := []v1beta1.CompletionPolicyType{v1beta1.AlwaysComplete, v1beta1.NeverComplete}
	if policy.Type != "" && !slices.Contains(types, policy.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), policy.Type, types))
	}
	times := map[string]*int64{"activeDeadlineSeconds": policy.ActiveDeadlineSeconds}
	if ttl := policy.TTLSecondsAfterFinished; ttl != nil {
		seconds := int64(*ttl)
		times["ttlSecondsAfterFinished"] = &seconds
	}
	for _, name := range []string{"activeDeadlineSeconds", "ttlSecondsAfterFinished"} {
		switch seconds := times[name]; {
		case seconds == nil:
		case policy.Type == v1beta1.NeverComplete:
			errs = append(errs, field.Invalid(path.Child(name), *seconds, name+" can only work with Always CompletionPolicyType"))
		default:
			errs = append(errs, notNegative(seconds, path.Child(name))...)
		}
	}
	return errs
}
