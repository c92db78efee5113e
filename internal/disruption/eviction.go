package disruption

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// blocking returns the name of a PodDisruptionBudget that would refuse an eviction, or of one of several, by which the API server never evicts; empty
// if there is none, and for what is no eviction. The API server asks it after us: what we had recorded by then would count for nothing.
func (h *hearing) blocking(ctx context.Context) (string, error) {
	if h.Operation != v1beta1.PubEvictOperation {
		return "", nil
	}
	var list policyv1.PodDisruptionBudgetList
	if err := h.Cached.List(ctx, &list, client.InNamespace(h.Pod.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	first := ""
	for i := range list.Items {
		b := &list.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(h.Pod.Labels)) {
			continue // the API server stores none whose selector can't be read
		}
		if first != "" || b.Status.DisruptionsAllowed <= 0 || b.Status.ObservedGeneration < b.Generation {
			return b.Name, nil
		}
		first = b.Name
	}
	return "", nil
}
