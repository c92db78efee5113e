package validating

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
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

// PodUnavailableBudget returns the handler that validates of PodUnavailableBudgets of both versions what their schemas can't.
func PodUnavailableBudget(o PodUnavailableBudgetOptions) admission.Handler {
	k := kind[v1beta1.PodUnavailableBudget, *v1beta1.PodUnavailableBudget]{
		hub:     v1beta1.GroupVersion,
		subject: budgetSubject,
		validate: func(ctx context.Context, w write[v1beta1.PodUnavailableBudget]) (findings, error) {
			if errs := ratcheted(budgetRules, w.new, w.old); len(errs) > 0 {
				return findings{errors: errs}, nil
			}
			return o.beside(ctx, w.namespace, w.new)
		},
	}
	if o.DisabledBy != "" {
		response := admission.Errored(http.StatusBadRequest, errors.New("feature-gates "+o.DisabledBy+" are not enabled"))
		k.disabled = &response
	}
	return k.handler()
}

// budgetSubject returns the spec, and the annotations that stand for fields of it.
func budgetSubject(b *v1beta1.PodUnavailableBudget) any {
	notes := map[string]string{}
	for _, key := range []string{keys.ProtectOperations, keys.ProtectTotalReplicas, keys.IgnoredPodSelector} {
		notes[key] = b.Annotations[key]
	}
	return []any{b.Spec, notes}
}

func budgetRules(b *v1beta1.PodUnavailableBudget) field.ErrorList {
	spec := field.NewPath("spec")
	errs := metavalidation.ValidateLabelSelector(b.Spec.Selector, metavalidation.LabelSelectorValidationOptions{}, spec.Child("selector"))
	if ignored := b.Spec.IgnoredPodSelector; ignored != nil { // v1alpha1 says it in an annotation, which no schema sees
		errs = append(errs, checkSelects(ignored, spec.Child("ignoredPodSelector"))...)
	}
	return append(errs, checkBudgetNotes(b)...)
}

func checkSelects(selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(at, "must not be empty: that would select every Pod of the namespace")}
	}
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, at)
}

// checkBudgetNotes judges the annotations that stand for fields. Where the older version was written, those that can be read are fields by
// now.
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

// beside compares a budget with the others of its namespace. Two that guard the same workload, or that ask for the same labels with values
// in common, would both want the same Pods.
func (o PodUnavailableBudgetOptions) beside(ctx context.Context, namespace string, now *v1beta1.PodUnavailableBudget) (findings, error) {
	var list v1beta1.PodUnavailableBudgetList
	if err := o.Live.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return findings{}, fmt.Errorf("looking for other budgets: %w", err)
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
	if len(errs) > 0 {
		return findings{errors: errs}, nil
	}
	return findings{warnings: warnings}, nil
}

func wayOf(named bool) string {
	if named {
		return "a workload by its targetRef"
	}
	return "Pods by its selector"
}
