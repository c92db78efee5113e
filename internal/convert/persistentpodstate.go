package convert

import (
	"slices"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// PersistentPodStateToHub fills dst with what src means: nodeTopologyKeys are keys there.
func PersistentPodStateToHub(src *v1alpha1.PersistentPodState, dst *v1beta1.PersistentPodState) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.PersistentPodStateBaseSpec.DeepCopyInto(&dst.Spec.PersistentPodStateBaseSpec)
	src.Status.DeepCopyInto(&dst.Status)
	if required := src.Spec.RequiredPersistentTopology; required != nil {
		dst.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: slices.Clone(required.NodeTopologyKeys)}
	}
	for _, term := range src.Spec.PreferredPersistentTopology {
		keys := v1beta1.NodeTopologyTerm{Keys: slices.Clone(term.Preference.NodeTopologyKeys)}
		dst.Spec.PreferredPersistentTopology = append(dst.Spec.PreferredPersistentTopology,
			v1beta1.PreferredTopologyTerm{Weight: term.Weight, Preference: keys})
	}
}

// PersistentPodStateFromHub fills dst with what src means: keys are nodeTopologyKeys there.
func PersistentPodStateFromHub(src *v1beta1.PersistentPodState, dst *v1alpha1.PersistentPodState) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.PersistentPodStateBaseSpec.DeepCopyInto(&dst.Spec.PersistentPodStateBaseSpec)
	src.Status.DeepCopyInto(&dst.Status)
	if required := src.Spec.RequiredPersistentTopology; required != nil {
		dst.Spec.RequiredPersistentTopology = &v1alpha1.NodeTopologyTerm{NodeTopologyKeys: slices.Clone(required.Keys)}
	}
	for _, term := range src.Spec.PreferredPersistentTopology {
		keys := v1alpha1.NodeTopologyTerm{NodeTopologyKeys: slices.Clone(term.Preference.Keys)}
		dst.Spec.PreferredPersistentTopology = append(dst.Spec.PreferredPersistentTopology,
			v1alpha1.PreferredTopologyTerm{Weight: term.Weight, Preference: keys})
	}
}
