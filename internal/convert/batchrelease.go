package convert

import (
	"strings"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// rollingStyles are what the annotation keys.RollingStyle of a BatchRelease says.
func rollingStyles() []v1beta1.RollingStyle {
	return []v1beta1.RollingStyle{v1beta1.RollingStyleCanary, v1beta1.RollingStylePartition, v1beta1.RollingStyleBlueGreen}
}

// BatchReleaseToHub fills dst with what src means. The annotation keys.RollingStyle stands in for an empty rollingStyle.
func BatchReleaseToHub(src *v1alpha1.BatchRelease, dst *v1beta1.BatchRelease) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.ReleasePlan.DeepCopyInto(&dst.Spec.ReleasePlan)
	src.Status.DeepCopyInto(&dst.Status.BatchReleaseBaseStatus)
	dst.Spec.WorkloadRef = v1beta1.WorkloadReference{}
	if ref := src.Spec.TargetRef.WorkloadRef; ref != nil {
		dst.Spec.WorkloadRef = *ref
	}
	for _, style := range rollingStyles() {
		if dst.Spec.ReleasePlan.RollingStyle == "" && strings.EqualFold(src.Annotations[keys.RollingStyle], string(style)) {
			dst.Spec.ReleasePlan.RollingStyle = style
		}
	}
	dst.Annotations = without(dst.Annotations, keys.RollingStyle)
	dst.Status.Message = src.Annotations[keys.RolloutHub]
	dst.Annotations = without(dst.Annotations, keys.RolloutHub)
}

// BatchReleaseFromHub fills dst with what src means. The message, which v1alpha1 has no field for, is in the annotation keys.RolloutHub.
func BatchReleaseFromHub(src *v1beta1.BatchRelease, dst *v1alpha1.BatchRelease) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	src.Spec.ReleasePlan.DeepCopyInto(&dst.Spec.ReleasePlan)
	src.Status.BatchReleaseBaseStatus.DeepCopyInto(&dst.Status)
	dst.Spec.TargetRef = v1alpha1.WorkloadObjectRef{}
	if ref := src.Spec.WorkloadRef; ref != (v1beta1.WorkloadReference{}) {
		dst.Spec.TargetRef.WorkloadRef = &ref
	}
	if style := src.Spec.ReleasePlan.RollingStyle; style != "" {
		dst.Annotations = with(dst.Annotations, keys.RollingStyle, strings.ToLower(string(style)))
	}
	if src.Status.Message != "" {
		dst.Annotations = with(dst.Annotations, keys.RolloutHub, src.Status.Message)
	}
}
