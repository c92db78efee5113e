package convert

import (
	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// BroadcastJobToHub fills dst with what src means: both versions have the same fields.
func BroadcastJobToHub(src *v1alpha1.BroadcastJob, dst *v1beta1.BroadcastJob) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.DeepCopyInto(&dst.Spec)
	src.Status.DeepCopyInto(&dst.Status)
}

// BroadcastJobFromHub fills dst with what src means.
func BroadcastJobFromHub(src *v1beta1.BroadcastJob, dst *v1alpha1.BroadcastJob) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.DeepCopyInto(&dst.Spec)
	src.Status.DeepCopyInto(&dst.Status)
}
