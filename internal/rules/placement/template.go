package placement

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Template returns the Pod template of a subset: that of all subsets, on the nodes of the subset, with its tolerations, and with its patch
// over everything else. The template that it is made of stays as it is.
func Template(all *corev1.PodTemplateSpec, subset *v1beta1.Subset) (*corev1.PodTemplateSpec, error) {
	out := all.DeepCopy()
	requireNodes(&out.Spec, &subset.NodeSelectorTerm)
	for i := range subset.Tolerations {
		out.Spec.Tolerations = append(out.Spec.Tolerations, *subset.Tolerations[i].DeepCopy())
	}
	if !HasPatch(subset) {
		return out, nil
	}
	text, err := json.Marshal(out)
	if err == nil {
		text, err = strategicpatch.StrategicMergePatch(text, subset.Patch.Raw, corev1.PodTemplateSpec{})
	}
	patched := &corev1.PodTemplateSpec{}
	if err == nil {
		err = json.Unmarshal(text, patched)
	}
	if err != nil {
		return nil, fmt.Errorf("patching the template of subset %s: %w", subset.Name, err)
	}
	return patched, nil
}

// HasPatch reports whether a subset has a patch.
func HasPatch(subset *v1beta1.Subset) bool {
	return len(subset.Patch.Raw) > 0 && string(subset.Patch.Raw) != "null"
}

// requireNodes adds a term to every term that the Pods require of a node already; where there is none, it is the only one. A node has to
// match one of the terms, so that it then has to match the subset's in each.
func requireNodes(spec *corev1.PodSpec, term *corev1.NodeSelectorTerm) {
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range required.NodeSelectorTerms {
		have, more := &required.NodeSelectorTerms[i], term.DeepCopy()
		have.MatchExpressions = append(slices.Clip(have.MatchExpressions), more.MatchExpressions...)
		have.MatchFields = append(slices.Clip(have.MatchFields), more.MatchFields...)
	}
}
