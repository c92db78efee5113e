package convert

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// sidecarSetRest is what one version says and the other has no field for. It travels in the annotation SidecarSetLegacyFields.
type sidecarSetRest struct {
	// Namespace, Strategy and Paused are the fields of v1alpha1.
	Namespace string                                 `json:"namespace,omitempty"`
	Strategy  *v1alpha1.SidecarSetDeprecatedStrategy `json:"strategy,omitempty"`
	Paused    *bool                                  `json:"paused,omitempty"`
	// Label is a label of v1beta1 that would be read as the customVersion in v1alpha1.
	Label *string `json:"label,omitempty"`
}

// SidecarSetToHub fills dst with what src means. The namespace becomes a requirement of the namespaceSelector, and the label of the custom
// version a field.
func SidecarSetToHub(src *v1alpha1.SidecarSet, dst *v1beta1.SidecarSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	dst.Spec = v1beta1.SidecarSetSpec{SidecarSetBaseSpec: in.SidecarSetBaseSpec}
	dst.Spec.NamespaceSelector = withNamespace(in.NamespaceSelector, in.Namespace)
	if version := dst.Labels[keys.SidecarSetCustomVersion]; version != "" {
		dst.Spec.CustomVersion = version
		dst.Labels = without(dst.Labels, keys.SidecarSetCustomVersion)
	}
	if kept := takeRest(&dst.ObjectMeta); kept.Label != nil {
		dst.Labels = with(dst.Labels, keys.SidecarSetCustomVersion, *kept.Label)
	}
	putRest(&dst.ObjectMeta, sidecarSetRest{Namespace: in.Namespace, Strategy: in.Strategy, Paused: in.Paused})
	src.Status.DeepCopyInto(&dst.Status)
}

// SidecarSetFromHub fills dst with what src means.
func SidecarSetFromHub(src *v1beta1.SidecarSet, dst *v1alpha1.SidecarSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	kept := takeRest(&dst.ObjectMeta)
	dst.Spec = v1alpha1.SidecarSetSpec{SidecarSetBaseSpec: in.SidecarSetBaseSpec, Strategy: kept.Strategy, Paused: kept.Paused}
	if rest, ok := withoutNamespace(in.NamespaceSelector, kept.Namespace); ok {
		dst.Spec.Namespace, dst.Spec.NamespaceSelector = kept.Namespace, rest
	}
	label, labelled := dst.Labels[keys.SidecarSetCustomVersion]
	if labelled && (label != "" || in.CustomVersion != "") {
		dst.Labels = without(dst.Labels, keys.SidecarSetCustomVersion)
		putRest(&dst.ObjectMeta, sidecarSetRest{Label: &label})
	}
	if in.CustomVersion != "" {
		dst.Labels = with(dst.Labels, keys.SidecarSetCustomVersion, in.CustomVersion)
	}
	src.Status.DeepCopyInto(&dst.Status)
}

// takeRest takes the annotation off. One that can't be read stays where it is, and says nothing.
func takeRest(meta *metav1.ObjectMeta) sidecarSetRest {
	text, ok := meta.Annotations[keys.SidecarSetLegacyFields]
	var rest sidecarSetRest
	if !ok || json.Unmarshal([]byte(text), &rest) != nil {
		return sidecarSetRest{}
	}
	meta.Annotations = without(meta.Annotations, keys.SidecarSetLegacyFields)
	return rest
}

func putRest(meta *metav1.ObjectMeta, rest sidecarSetRest) {
	encoded, err := json.Marshal(rest)
	if err != nil || string(encoded) == "{}" {
		return // texts, numbers and booleans can always be encoded
	}
	meta.Annotations = with(meta.Annotations, keys.SidecarSetLegacyFields, string(encoded))
}

// withNamespace adds to a selector of namespaces that the namespace has this name. What it returns tells, to who knows the name, which
// selector it was made from.
func withNamespace(selector *metav1.LabelSelector, name string) *metav1.LabelSelector {
	switch {
	case name == "":
		return selector
	case selector == nil:
		return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
	default:
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{name},
		})
		return selector
	}
}

// withoutNamespace undoes withNamespace. It can't where the selector was changed since, or there is no name.
func withoutNamespace(selector *metav1.LabelSelector, name string) (*metav1.LabelSelector, bool) {
	if selector == nil || name == "" {
		return nil, false
	}
	last := len(selector.MatchExpressions) - 1
	if last < 0 {
		return nil, len(selector.MatchLabels) == 1 && selector.MatchLabels[corev1.LabelMetadataName] == name
	}
	at := selector.MatchExpressions[last]
	if at.Key != corev1.LabelMetadataName || at.Operator != metav1.LabelSelectorOpIn || !slices.Equal(at.Values, []string{name}) {
		return nil, false
	}
	rest := selector.DeepCopy()
	if rest.MatchExpressions = rest.MatchExpressions[:last]; last == 0 {
		rest.MatchExpressions = nil
	}
	return rest, true
}
