package validating

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// PodUnavailableBudgetOptions is what the validation of PodUnavailableBudgets needs.
type PodUnavailableBudgetOptions struct {
	// Live reads the other budgets, around a cache that may not know the one before yet.
	Live client.Reader
	// DisabledBy are the feature gates that are off such that no budget would be heeded; empty when one of them is on.
	DisabledBy string
}

// PodUnavailableBudget returns the handler that validates PodUnavailableBudgets of both versions.
func PodUnavailableBudget(o PodUnavailableBudgetOptions) admission.Handler {
	return onWritten(o.written)
}

func (o PodUnavailableBudgetOptions) written(ctx context.Context, asked admission.Request) admission.Response {
	now, err := decodeBudget(asked.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	var before *v1beta1.PodUnavailableBudget
	if asked.Operation == admissionv1.Update {
		if before, err = decodeBudget(asked.OldObject); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		// What is on its way out must get rid of its finalizers, and what was stored before a rule was made can still be labelled.
		if now.DeletionTimestamp != nil || equality.Semantic.DeepEqual(now.Spec, before.Spec) && sameBudgetNotes(now, before) {
			return admission.Allowed("")
		}
	}
	if o.DisabledBy != "" {
		return admission.Errored(http.StatusBadRequest, errors.New("feature-gates "+o.DisabledBy+" are not enabled"))
	}
	errs := checkBudget(now, before)
	if len(errs) > 0 {
		return invalid(asked, errs)
	}
	errs, warnings, err := o.beside(ctx, asked.Namespace, now)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case len(errs) > 0:
		return invalid(asked, errs)
	}
	return admission.Allowed("").WithWarnings(warnings...)
}

// decodeBudget returns what a budget of either version means.
func decodeBudget(from runtime.RawExtension) (*v1beta1.PodUnavailableBudget, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, err
	}
	if u.GetAPIVersion() != v1alpha1.GroupVersion.String() {
		return request.Decode[v1beta1.PodUnavailableBudget](u)
	}
	older, err := request.Decode[v1alpha1.PodUnavailableBudget](u)
	if err != nil {
		return nil, err
	}
	hub := &v1beta1.PodUnavailableBudget{}
	convert.PodUnavailableBudgetToHub(older, hub)
	return hub, nil
}

// sameBudgetNotes reports whether the annotations that stand for fields are the same.
func sameBudgetNotes(a, b *v1beta1.PodUnavailableBudget) bool {
	for _, key := range []string{keys.ProtectOperations, keys.ProtectTotalReplicas, keys.IgnoredPodSelector} {
		if a.Annotations[key] != b.Annotations[key] {
			return false
		}
	}
	return true
}

// checkBudget judges a budget by itself; before is nil for a new one.
func checkBudget(now, before *v1beta1.PodUnavailableBudget) field.ErrorList {
	spec := field.NewPath("spec")
	errs := checkGuarded(now, before, spec)
	switch {
	case now.Spec.MaxUnavailable == nil && now.Spec.MinAvailable == nil:
		errs = append(errs, field.Required(spec.Child("maxUnavailable"), "give maxUnavailable or minAvailable"))
	case now.Spec.MaxUnavailable != nil && now.Spec.MinAvailable != nil:
		errs = append(errs, field.Forbidden(spec.Child("minAvailable"), "give only one of maxUnavailable and minAvailable"))
	}
	errs = append(errs, numberOrPercent(now.Spec.MaxUnavailable, spec.Child("maxUnavailable"))...)
	errs = append(errs, numberOrPercent(now.Spec.MinAvailable, spec.Child("minAvailable"))...)
	known := []v1beta1.PubOperation{v1beta1.PubDeleteOperation, v1beta1.PubUpdateOperation, v1beta1.PubEvictOperation, v1beta1.PubResizeOperation}
	for i, operation := range now.Spec.ProtectOperations {
		if _, ok := disruption.ParseOperations(string(operation)); !ok || operation == "" {
			errs = append(errs, field.NotSupported(spec.Child("protectOperations").Index(i), operation, known))
		}
	}
	if total := now.Spec.ProtectTotalReplicas; total != nil && *total < 1 {
		errs = append(errs, field.Invalid(spec.Child("protectTotalReplicas"), *total, "must be 1 or more"))
	}
	if ignored := now.Spec.IgnoredPodSelector; ignored != nil {
		errs = append(errs, checkSelects(ignored, spec.Child("ignoredPodSelector"))...)
	}
	return append(errs, checkBudgetNotes(now)...)
}

// checkGuarded judges what the budget guards.
func checkGuarded(now, before *v1beta1.PodUnavailableBudget, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	selector, target := now.Spec.Selector, now.Spec.TargetReference
	switch {
	case selector == nil && target == nil:
		errs = append(errs, field.Required(spec.Child("selector"), "give selector or targetRef"))
	case selector != nil && target != nil:
		errs = append(errs, field.Forbidden(spec.Child("targetRef"), "give only one of selector and targetRef"))
	case selector != nil:
		errs = append(errs, checkSelects(selector, spec.Child("selector"))...)
	default:
		errs = append(errs, checkTarget(target, spec.Child("targetRef"))...)
	}
	if before == nil {
		return errs
	}
	if !equality.Semantic.DeepEqual(selector, before.Spec.Selector) {
		errs = append(errs, field.Forbidden(spec.Child("selector"), "is immutable: create another budget to guard other Pods"))
	}
	if !equality.Semantic.DeepEqual(target, before.Spec.TargetReference) {
		errs = append(errs, field.Forbidden(spec.Child("targetRef"), "is immutable: create another budget to guard another workload"))
	}
	return errs
}

func checkTarget(target *v1beta1.TargetReference, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for child, value := range map[string]string{"apiVersion": target.APIVersion, "kind": target.Kind, "name": target.Name} {
		if value == "" {
			errs = append(errs, field.Required(at.Child(child), "names a part of the workload"))
		}
	}
	if _, err := schema.ParseGroupVersion(target.APIVersion); err != nil {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), target.APIVersion, err.Error()))
	}
	return errs
}

func checkSelects(selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(at, "must not be empty: that would select every Pod of the namespace")}
	}
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, at)
}

// checkBudgetNotes judges the annotations that stand for fields. Where the older version was written, those that can be read are fields by now.
func checkBudgetNotes(b *v1beta1.PodUnavailableBudget) field.ErrorList {
	at := field.NewPath("metadata", "annotations")
	var errs field.ErrorList
	if text := b.Annotations[keys.ProtectOperations]; text != "" {
		if _, ok := disruption.ParseOperations(text); !ok {
			errs = append(errs, field.Invalid(at.Key(keys.ProtectOperations), text, "must be some of DELETE, UPDATE, EVICT and RESIZE, with commas between them"))
		}
	}
	if text, written := b.Annotations[keys.ProtectTotalReplicas]; written {
		total, ok := disruption.ParseTotal(text)
		switch said := b.Spec.ProtectTotalReplicas; {
		case !ok:
			errs = append(errs, field.Invalid(at.Key(keys.ProtectTotalReplicas), text, "must be a number of 1 or more"))
		case said != nil && *said != total:
			errs = append(errs, field.Invalid(at.Key(keys.ProtectTotalReplicas), text, fmt.Sprintf("must be the same as spec.protectTotalReplicas, which is %d", *said)))
		}
	}
	if text, written := b.Annotations[keys.IgnoredPodSelector]; written && convert.ParseSelector(text) == nil {
		errs = append(errs, field.Invalid(at.Key(keys.IgnoredPodSelector), text, "must be a label selector, as JSON"))
	}
	return errs
}

// beside compares a budget with the others of its namespace. Two that guard the same workload, or that ask for the same labels with values in common,
// would both want the same Pods.
func (o PodUnavailableBudgetOptions) beside(ctx context.Context, namespace string, now *v1beta1.PodUnavailableBudget) (field.ErrorList, []string, error) {
	var list v1beta1.PodUnavailableBudgetList
	if err := o.Live.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, nil, fmt.Errorf("looking for other budgets: %w", err)
	}
	spec := field.NewPath("spec")
	var errs field.ErrorList
	var warnings []string
	mine, named := disruption.TargetOf(now)
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == now.Name {
			continue
		}
		theirs, otherNamed := disruption.TargetOf(other)
		switch {
		case named != otherNamed:
			warnings = append(warnings, fmt.Sprintf(
				"PodUnavailableBudget %s guards %s: a new Pod that both would guard belongs to the one with a targetRef", other.Name, wayOf(otherNamed)))
		case named && mine == theirs:
			errs = append(errs, field.Forbidden(spec.Child("targetRef"), fmt.Sprintf("PodUnavailableBudget %s guards this workload already", other.Name)))
		case !named && pod.SelectSameKeys(now.Spec.Selector, other.Spec.Selector) && pod.SelectorsOverlap(now.Spec.Selector, other.Spec.Selector):
			errs = append(errs, field.Forbidden(spec.Child("selector"), fmt.Sprintf("PodUnavailableBudget %s may select the same Pods", other.Name)))
		}
	}
	return errs, warnings, nil
}

func wayOf(named bool) string {
	if named {
		return "a workload by its targetRef"
	}
	return "Pods by its selector"
}
