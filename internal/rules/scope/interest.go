package scope

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Interest is in the Pods whose labels meet all of some requirements, in the namespaces whose labels meet all of others.
type Interest struct {
	pods labels.Requirements
	// names are the requirements on the name of the namespace, labels those on its other labels.
	names, labels labels.Requirements
}

// OfSidecarSet returns the interest of a SidecarSet; ok is false if it has none, because nothing is injected by it now.
func OfSidecarSet(set *v1beta1.SidecarSet) (interest Interest, ok bool) {
	if set.Spec.InjectionStrategy.Paused || set.DeletionTimestamp != nil {
		return Interest{}, false
	}
	return OfSelectors(set.Spec.Selector, set.Spec.NamespaceSelector)
}

// OfPodProbeMarker returns the interest of a PodProbeMarker; ok is false if it has none, because it is on its way out or selects nothing.
func OfPodProbeMarker(m *v1alpha1.PodProbeMarker) (interest Interest, ok bool) {
	selector := m.Spec.Selector
	if m.DeletionTimestamp != nil || selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return Interest{}, false
	}
	return OfSelectors(selector, &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: m.Namespace}})
}

// OfSelectors returns the interest in what the two selectors of a SidecarSet select; ok is false if they can't be read and so select
// nothing.
func OfSelectors(pods, namespaces *metav1.LabelSelector) (interest Interest, ok bool) {
	selected, err := sidecar.Select(pods, namespaces)
	if err != nil {
		return Interest{}, false
	}
	all, ofNamespaces := selected.Requirements()
	interest.pods = all
	for _, r := range ofNamespaces {
		if r.Key() != corev1.LabelMetadataName {
			interest.labels = append(interest.labels, r)
			continue
		}
		switch r.Operator() {
		case selection.Exists: // every namespace has it
		case selection.DoesNotExist:
			interest.labels = append(interest.labels, r)
		default:
			interest.names = append(interest.names, r)
		}
	}
	return interest, true
}

// Equal reports whether both are in the same Pods as far as their words tell: false may be said of two ways to say the same.
func (i Interest) Equal(other Interest) bool {
	return text(i.pods) == text(other.pods) && text(i.names) == text(other.names) && text(i.labels) == text(other.labels)
}

// text is the same for the same requirements in any order.
func text(requirements labels.Requirements) string {
	words := make([]string, 0, len(requirements))
	for i := range requirements {
		words = append(words, requirements[i].String())
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ",")
}
