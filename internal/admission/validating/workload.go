package validating

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

// workload is what all kinds that keep Pods have in common.
type workload struct {
	kind     string
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	// oldTemplate is nil for a new object.
	oldTemplate *corev1.PodTemplateSpec
}

// checkSelector checks that the selector selects the Pods of a template that is new. The schema says that there is one and that it stays what it is.
func (w workload) checkSelector(spec *field.Path) field.ErrorList {
	if w.oldTemplate != nil && maps.Equal(w.oldTemplate.Labels, w.template.Labels) {
		return nil
	}
	at := spec.Child("selector")
	if errs := metavalidation.ValidateLabelSelector(w.selector, metavalidation.LabelSelectorValidationOptions{}, at); len(errs) > 0 {
		return errs
	}
	parsed, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return field.ErrorList{field.Invalid(at, w.selector, err.Error())}
	}
	if !parsed.Matches(labels.Set(w.template.Labels)) {
		return field.ErrorList{field.Invalid(spec.Child("template", "metadata", "labels"), w.template.Labels,
			fmt.Sprintf("selector %q does not match: add its labels to the template", parsed))}
	}
	return nil
}

// checkPodsRunForEver checks what a kind that keeps Pods running asks of their template.
func (w workload) checkPodsRunForEver(template *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec := &w.template.Spec
	if spec.RestartPolicy != "" && spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(template.Child("spec", "restartPolicy"), spec.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(template.Child("spec", "activeDeadlineSeconds"),
			fmt.Sprintf("activeDeadlineSeconds in %s is not supported: its Pods are to run for ever", w.kind)))
	}
	return errs
}

// checkTemplate checks a template that is new: first what this kind asks of it, then, by the API server, what every template must be. It is raw as
// it came, with all that this build does not know.
func (w workload) checkTemplate(ctx context.Context, checker TemplateChecker, namespace string, raw map[string]any) findings {
	path := field.NewPath("spec", "template")
	errs := w.checkPodsRunForEver(path)
	if len(errs) > 0 || checker == nil {
		return findings{errors: errs}
	}
	verdict := judge(ctx, checker, namespace, raw, path)
	return findings{errors: verdict.Errors, warnings: verdict.Warnings}
}

// notNegative checks a number that may be left out.
func notNegative[N int32 | int64](value *N, path *field.Path) field.ErrorList {
	if value == nil || *value >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, "must be greater than or equal to 0")}
}

// nothingMoves warns of a new template that a partition keeps from all Pods, or from the Pods of all nodes.
func nothingMoves(what string, partition any, total int) string {
	return fmt.Sprintf("no %s will be updated: partition %v keeps all %d at their old revision; lower it to start", what, partition, total)
}

// judge asks the API server about a template, and names the fields of its answer by where the template stands.
func judge(ctx context.Context, checker TemplateChecker, namespace string, template map[string]any, path *field.Path) Verdict {
	verdict := checker.Check(ctx, namespace, template)
	for _, err := range verdict.Errors {
		if rest, ok := strings.CutPrefix(err.Field, "template"); ok {
			err.Field = path.String() + rest
		} else {
			err.Field = path.String()
		}
	}
	return verdict
}

// hookWarnings tells of a hook whose marks new Pods will not carry: somebody else must put them there, or the hook holds nothing.
func (w workload) hookWarnings(lifecycle *pub.Lifecycle) []string {
	if lifecycle == nil {
		return nil
	}
	return append(hookWarnings("preDelete", lifecycle.PreDelete, w.template), hookWarnings("inPlaceUpdate", lifecycle.InPlaceUpdate, w.template)...)
}

func hookWarnings(name string, hook *pub.LifecycleHook, template *corev1.PodTemplateSpec) []string {
	if hook == nil {
		return nil
	}
	var out []string
	for _, finalizer := range hook.FinalizersHandler {
		if !slices.Contains(template.Finalizers, finalizer) {
			out = append(out, fmt.Sprintf("spec.lifecycle.%s: the template has no finalizer %s, so that the hook holds no Pod that is not given it otherwise", name, finalizer))
		}
	}
	for key, value := range hook.LabelsHandler {
		if template.Labels[key] != value {
			out = append(out, fmt.Sprintf("spec.lifecycle.%s: the template has no label %s=%s, so that the hook holds no Pod that is not given it otherwise", name, key, value))
		}
	}
	slices.Sort(out)
	return out
}
