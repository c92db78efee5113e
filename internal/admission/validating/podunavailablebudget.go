package validating

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// PodUnavailableBudget returns the handler that validates of PodUnavailableBudgets of both versions what their schemas can't.
func PodUnavailableBudget(o Options) admission.Handler {
	return kind[v1beta1.PodUnavailableBudget, *v1beta1.PodUnavailableBudget]{
		hub:      v1beta1.GroupVersion,
		subject:  budgetSubject,
		disabled: o.disabled("PodUnavailableBudget", http.StatusBadRequest),
		validate: func(ctx context.Context, w write[v1beta1.PodUnavailableBudget]) (findings, error) {
			if found := rules[v1beta1.PodUnavailableBudget](budgetRules).ratcheted(w); len(found.errors) > 0 {
				return found, nil
			}
			return o.besideBudgets(ctx, w.namespace, w.new)
		},
	}.handler()
}

// budgetSubject returns the spec, and the annotations that stand for fields of it.
func budgetSubject(b *v1beta1.PodUnavailableBudget) any {
	notes := map[string]string{}
	for _, key := range []string{keys.ProtectOperations, keys.ProtectTotalReplicas, keys.IgnoredPodSelector} {
		notes[key] = b.Annotations[key]
	}
	return []any{b.Spec, notes}
}

func budgetRules(found *findings, b *v1beta1.PodUnavailableBudget) {
	spec := field.NewPath("spec")
	found.selector(spec.Child("selector"), b.Spec.Selector)
	if ignored := b.Spec.IgnoredPodSelector; ignored != nil { // v1alpha1 says it in an annotation, which no schema sees
		if at := spec.Child("ignoredPodSelector"); len(ignored.MatchLabels)+len(ignored.MatchExpressions) == 0 {
			found.required(at, "must not be empty: that would select every Pod of the namespace")
		} else {
			found.selector(at, ignored)
		}
	}
	budgetAnnotations(found, b)
}

// budgetAnnotations checks the annotations that stand for fields. Where the older version was written, those that can be read are fields by
// now.
func budgetAnnotations(found *findings, b *v1beta1.PodUnavailableBudget) {
	at := field.NewPath("metadata", "annotations")
	if text := b.Annotations[keys.ProtectOperations]; text != "" {
		if _, ok := disruption.ParseOperations(text); !ok {
			found.invalid(at.Key(keys.ProtectOperations), text,
				"must be some of DELETE, UPDATE, EVICT and RESIZE, with commas between them")
		}
	}
	if text, written := b.Annotations[keys.ProtectTotalReplicas]; written {
		at := at.Key(keys.ProtectTotalReplicas)
		total, ok := disruption.ParseTotal(text)
		switch said := b.Spec.ProtectTotalReplicas; {
		case !ok:
			found.invalid(at, text, "must be a number of 1 or more")
		case said != nil && *said != total:
			found.invalid(at, text, "must be the same as spec.protectTotalReplicas, which is %d", *said)
		}
	}
	if text, written := b.Annotations[keys.IgnoredPodSelector]; written && convert.ParseSelector(text) == nil {
		found.invalid(at.Key(keys.IgnoredPodSelector), text, "must be a label selector, as JSON")
	}
}

// besideBudgets compares a budget with the others of its namespace. Two that guard the same workload, or that ask for the same labels with
// values in common, would both want the same Pods.
func (o Options) besideBudgets(ctx context.Context, namespace string, now *v1beta1.PodUnavailableBudget) (findings, error) {
	var list v1beta1.PodUnavailableBudgetList
	if err := o.Live.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return findings{}, fmt.Errorf("looking for other budgets: %w", err)
	}
	spec := field.NewPath("spec")
	var found findings
	mine, named := disruption.TargetOf(now)
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == now.Name {
			continue
		}
		theirs, otherNamed := disruption.TargetOf(other)
		selector, otherSelector := now.Spec.Selector, other.Spec.Selector
		switch {
		case named && !otherNamed:
			found.warn("PodUnavailableBudget %s guards Pods by its selector: %s", other.Name, targetWins)
		case otherNamed && !named:
			found.warn("PodUnavailableBudget %s guards a workload by its targetRef: %s", other.Name, targetWins)
		case named && mine == theirs:
			found.forbidden(spec.Child("targetRef"), "PodUnavailableBudget %s guards this workload already", other.Name)
		case !named && pod.SelectSameKeys(selector, otherSelector) && pod.SelectorsOverlap(selector, otherSelector):
			found.forbidden(spec.Child("selector"), "PodUnavailableBudget %s may select the same Pods", other.Name)
		}
	}
	if len(found.errors) > 0 {
		found.warnings = nil
	}
	return found, nil
}

const targetWins = "a new Pod that both would guard belongs to the one with a targetRef"
