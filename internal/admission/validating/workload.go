package validating

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// workload is what all kinds that keep Pods have in common.
type workload struct {
	kind      string
	selector  *metav1.LabelSelector
	template  *corev1.PodTemplateSpec
	claims    []corev1.PersistentVolumeClaim
	lifecycle *pub.Lifecycle
	// before is what an update replaces; nil for a new object.
	before *workload
}

// templateChanged reports whether the template is new.
func (w *workload) templateChanged() bool {
	return w.before == nil || !equality.Semantic.DeepEqual(w.before.template, w.template)
}

func (w *workload) claimsChanged() bool {
	return w.before == nil || !equality.Semantic.DeepEqual(w.before.claims, w.claims)
}

// check checks what is new of selector, template and claim templates. raw is the template with all that this build does not know.
func (w *workload) check(ctx context.Context, checker TemplateChecker, namespace string, raw map[string]any) findings {
	spec := field.NewPath("spec")
	found := findings{errors: w.checkSelector(spec)}
	if w.claimsChanged() {
		found.claimNames(spec.Child("volumeClaimTemplates"), w.claims)
	}
	if !w.templateChanged() && !w.claimsChanged() {
		return found
	}
	template := spec.Child("template")
	endless := w.checkPodsRunForEver(template.Child("spec"))
	found.join(endless)
	if len(endless.errors) == 0 && checker != nil {
		found.join(judge(ctx, checker, namespace, withClaims(raw, w.claims), template).findings())
	}
	return found
}

// checkSelector checks that the selector selects the Pods of a template whose labels are new. The schema says that there is a selector and
// that it stays what it is.
func (w *workload) checkSelector(spec *field.Path) field.ErrorList {
	if w.before != nil && maps.Equal(w.before.template.Labels, w.template.Labels) {
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

// checkPodsRunForEver checks what a kind that keeps Pods running asks of their template, where it is new.
func (w *workload) checkPodsRunForEver(path *field.Path) (found findings) {
	var before corev1.PodSpec
	if w.before != nil {
		before = w.before.template.Spec
	}
	spec := &w.template.Spec
	if policy := spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways && policy != before.RestartPolicy {
		only := []corev1.RestartPolicy{corev1.RestartPolicyAlways}
		found.add(field.ErrorList{field.NotSupported(path.Child("restartPolicy"), policy, only)})
	}
	if spec.ActiveDeadlineSeconds != nil && before.ActiveDeadlineSeconds == nil {
		found.forbidden(path.Child("activeDeadlineSeconds"),
			"activeDeadlineSeconds in %s is not supported: its Pods are to run for ever", w.kind)
	}
	return found
}

// refusal says why the new template can't be reached in place; nil where it can or where it is not new.
func (w *workload) refusal(o inplace.Options) *inplace.Refusal {
	if w.before == nil || !w.templateChanged() {
		return nil
	}
	_, refusal := inplace.DiffTemplates(w.before.template, w.template, o)
	return refusal
}

// inPlaceOnly refuses a template that could only be rolled out by recreating Pods.
func (w *workload) inPlaceOnly(found *findings, o inplace.Options) {
	if refusal := w.refusal(o); refusal != nil {
		found.forbidden(pointer(field.NewPath("spec", "template"), refusal.Path), "only allowed to update images in spec for InPlaceOnly, "+
			"but found %s %s (%s): change it with podUpdatePolicy InPlaceIfPossible or ReCreate", refusal.Op, refusal.Path, refusal.Why)
	}
}

// weights checks the selectors of an order by weights.
func (f *findings) weights(path *field.Path, priority *pub.UpdatePriorityStrategy) {
	if priority == nil {
		return
	}
	for i := range priority.WeightPriority {
		f.selector(path.Child("weightPriority").Index(i).Child("matchSelector"), &priority.WeightPriority[i].MatchSelector)
	}
}

// nothingMoves warns of a new template that a partition keeps from all Pods, or from the Pods of all nodes.
func (f *findings) nothingMoves(what string, partition any, total int) {
	f.warn("no %s will be updated: partition %v keeps all %d at their old revision; lower it to start", what, partition, total)
}

// hookWarnings tells of a hook whose marks new Pods will not carry: somebody else must put them there, or the hook holds nothing.
func (w *workload) hookWarnings(found *findings) {
	if w.lifecycle == nil {
		return
	}
	const consequence = "so that the hook holds no Pod that is not given it otherwise"
	for _, h := range []struct {
		name string
		hook *pub.LifecycleHook
	}{{"preDelete", w.lifecycle.PreDelete}, {"inPlaceUpdate", w.lifecycle.InPlaceUpdate}} {
		if h.hook == nil {
			continue
		}
		var missing findings
		for _, finalizer := range h.hook.FinalizersHandler {
			if !slices.Contains(w.template.Finalizers, finalizer) {
				missing.warn("spec.lifecycle.%s: the template has no finalizer %s, %s", h.name, finalizer, consequence)
			}
		}
		for key, value := range h.hook.LabelsHandler {
			if w.template.Labels[key] != value {
				missing.warn("spec.lifecycle.%s: the template has no label %s=%s, %s", h.name, key, value, consequence)
			}
		}
		slices.Sort(missing.warnings)
		found.join(missing)
	}
}
