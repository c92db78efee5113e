package convert

import (
	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// StatefulSetToHub fills dst with what src means: both versions have the same fields.
func StatefulSetToHub(src *v1alpha1.StatefulSet, dst *v1beta1.StatefulSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.DeepCopyInto(&dst.Spec)
	src.Status.DeepCopyInto(&dst.Status)
}

// StatefulSetFromHub fills dst with what src means.
func StatefulSetFromHub(src *v1beta1.StatefulSet, dst *v1alpha1.StatefulSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.DeepCopyInto(&dst.Spec)
	src.Status.DeepCopyInto(&dst.Status)
}
