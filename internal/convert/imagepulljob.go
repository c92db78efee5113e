package convert

import (
	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// ImagePullJobToHub fills dst with what src means: both versions have the same fields.
func ImagePullJobToHub(src *v1alpha1.ImagePullJob, dst *v1beta1.ImagePullJob) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.DeepCopyInto(&dst.Spec)
	src.Status.DeepCopyInto(&dst.Status)
}

// ImagePullJobFromHub fills dst with what src means.
func ImagePullJobFromHub(src *v1beta1.ImagePullJob, dst *v1alpha1.ImagePullJob) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.DeepCopyInto(&dst.Spec)
	src.Status.DeepCopyInto(&dst.Status)
}

// ImageListPullJobToHub fills dst with what src means: both versions have the same fields.
func ImageListPullJobToHub(src *v1alpha1.ImageListPullJob, dst *v1beta1.ImageListPullJob) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.DeepCopyInto(&dst.Spec)
	src.Status.DeepCopyInto(&dst.Status)
}

// ImageListPullJobFromHub fills dst with what src means.
func ImageListPullJobFromHub(src *v1beta1.ImageListPullJob, dst *v1alpha1.ImageListPullJob) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.DeepCopyInto(&dst.Spec)
	src.Status.DeepCopyInto(&dst.Status)
}
