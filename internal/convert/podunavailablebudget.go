package convert

import (
	"encoding/json"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

// PodUnavailableBudgetToHub fills dst with what src means. The annotations that stand for fields become those fields. One that can't be
// read stays where it is, for admission to refuse: an error here would keep everybody from listing budgets at all.
func PodUnavailableBudgetToHub(src *v1alpha1.PodUnavailableBudget, dst *v1beta1.PodUnavailableBudget) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	dst.Spec = v1beta1.PodUnavailableBudgetSpec{PodUnavailableBudgetBaseSpec: *src.Spec.PodUnavailableBudgetBaseSpec.DeepCopy()}
	src.Status.DeepCopyInto(&dst.Status)
	if operations, ok := disruption.ParseOperations(src.Annotations[keys.ProtectOperations]); ok && len(operations) > 0 {
		dst.Spec.ProtectOperations = operations
		dst.Annotations = without(dst.Annotations, keys.ProtectOperations)
	}
	if total, ok := disruption.ParseTotal(src.Annotations[keys.ProtectTotalReplicas]); ok {
		dst.Spec.ProtectTotalReplicas = &total
		dst.Annotations = without(dst.Annotations, keys.ProtectTotalReplicas)
	}
	if selector := ParseSelector(src.Annotations[keys.IgnoredPodSelector]); selector != nil {
		dst.Spec.IgnoredPodSelector = selector
		dst.Annotations = without(dst.Annotations, keys.IgnoredPodSelector)
	}
}

// PodUnavailableBudgetFromHub fills dst with what src means. A field decides on its annotation; one beside an empty field stays, because it
// counts.
func PodUnavailableBudgetFromHub(src *v1beta1.PodUnavailableBudget, dst *v1alpha1.PodUnavailableBudget) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.PodUnavailableBudgetBaseSpec.DeepCopyInto(&dst.Spec.PodUnavailableBudgetBaseSpec)
	src.Status.DeepCopyInto(&dst.Status)
	if operations := src.Spec.ProtectOperations; len(operations) > 0 {
		words := make([]string, len(operations))
		for i, operation := range operations {
			words[i] = string(operation)
		}
		dst.Annotations = with(dst.Annotations, keys.ProtectOperations, strings.Join(words, ","))
	}
	if total := src.Spec.ProtectTotalReplicas; total != nil {
		dst.Annotations = with(dst.Annotations, keys.ProtectTotalReplicas, strconv.Itoa(int(*total)))
	}
	if selector := src.Spec.IgnoredPodSelector; selector != nil {
		text, _ := json.Marshal(selector) // strings alone, which can be written
		dst.Annotations = with(dst.Annotations, keys.IgnoredPodSelector, string(text))
	}
}

// ParseSelector reads a selector that is written as JSON; nil if it can't be read or is not there.
func ParseSelector(text string) *metav1.LabelSelector {
	var selector *metav1.LabelSelector
	if text == "" || json.Unmarshal([]byte(text), &selector) != nil {
		return nil
	}
	return selector
}
