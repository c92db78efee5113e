package disruption

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// Reference names a workload in the namespace of a budget, whatever its version.
type Reference struct {
	schema.GroupKind
	Name string
}

// TargetOf returns the workload that a budget names; false if it guards by a selector, or names one of a version that can't be read.
func TargetOf(b *v1beta1.PodUnavailableBudget) (Reference, bool) {
	ref := b.Spec.TargetReference
	if ref == nil {
		return Reference{}, false
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return Reference{GroupKind: schema.GroupKind{Group: version.Group, Kind: ref.Kind}, Name: ref.Name}, err == nil
}

// SelectorOf returns the selector of a budget; nil if it names a workload instead, or if the selector is empty or can't be read: such a
// budget guards nothing.
func SelectorOf(b *v1beta1.PodUnavailableBudget) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil || selector.Empty() || b.Spec.TargetReference != nil {
		return nil
	}
	return selector
}

// Candidate is a Pod that may be guarded.
type Candidate struct {
	Labels map[string]string
	// Owners are its controller, the controller of that, and so on.
	Owners []Reference
}

// Choose returns the budget that guards a Pod, of all budgets of its namespace in the order of their names: the first that names a workload
// of the Pod, else the first whose selector matches it; nil if there is none.
func Choose(budgets []*v1beta1.PodUnavailableBudget, c Candidate) *v1beta1.PodUnavailableBudget {
	var selected *v1beta1.PodUnavailableBudget
	for _, b := range budgets {
		switch {
		case !c.IsGuardedBy(b):
		case b.Spec.TargetReference != nil:
			return b
		case selected == nil:
			selected = b
		}
	}
	return selected
}

// IsGuardedBy reports whether the budget names a workload of the Pod, or its selector matches the Pod.
func (c Candidate) IsGuardedBy(b *v1beta1.PodUnavailableBudget) bool {
	if target, ok := TargetOf(b); ok {
		for _, owner := range c.Owners {
			if owner == target {
				return true
			}
		}
		return false
	}
	selector := SelectorOf(b)
	return selector != nil && selector.Matches(labels.Set(c.Labels))
}

// Link writes into the annotations of a Pod which budget guards it; an empty name takes that away. It returns the annotations, which are
// not shared with those given.
func Link(annotations map[string]string, name string) map[string]string {
	out := make(map[string]string, len(annotations)+2)
	for key, value := range annotations {
		if key != keys.RelatedBudget && key != keys.RelatedBudgetOld {
			out[key] = value
		}
	}
	if name != "" {
		out[keys.RelatedBudget], out[keys.RelatedBudgetOld] = name, name
	}
	return out
}
