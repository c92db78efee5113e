package convert

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// DaemonSetToHub fills dst with what src means. The annotation that stands for scaleStrategy.partitionedScaling is taken off: it says
// nothing in the hub version, and one that stayed would turn the field on again after a user of the hub version turned it off.
func DaemonSetToHub(src *v1alpha1.DaemonSet, dst *v1beta1.DaemonSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	dst.Spec = v1beta1.DaemonSetSpec{
		DaemonSetBaseSpec: in.DaemonSetBaseSpec,
		UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{
			Type:          in.UpdateStrategy.Type,
			RollingUpdate: surgingAsStandard((*v1beta1.RollingUpdateDaemonSet)(in.UpdateStrategy.RollingUpdate)),
		},
	}
	if src.Annotations[keys.ProgressiveCreatePod] == "true" {
		dst.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
		dst.Annotations = without(dst.Annotations, keys.ProgressiveCreatePod)
	}
	status := src.Status.DeepCopy()
	dst.Status = v1beta1.DaemonSetStatus{DaemonSetBaseStatus: status.DaemonSetBaseStatus, UpdateRevision: status.DaemonSetHash}
}

// surgingAsStandard returns how the hub version spells the type that only v1alpha1 has.
func surgingAsStandard(rolling *v1beta1.RollingUpdateDaemonSet) *v1beta1.RollingUpdateDaemonSet {
	if rolling != nil && rolling.Type == v1alpha1.DeprecatedSurgingRollingUpdateType {
		rolling.Type = v1beta1.StandardRollingUpdateType
		if rolling.MaxSurge == nil {
			one := intstr.FromInt32(1)
			rolling.MaxSurge = &one
		}
	}
	return rolling
}

// DaemonSetFromHub fills dst with what src means. The field scaleStrategy.partitionedScaling alone decides on the annotation that stands
// for it.
func DaemonSetFromHub(src *v1beta1.DaemonSet, dst *v1alpha1.DaemonSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	dst.Spec = v1alpha1.DaemonSetSpec{
		DaemonSetBaseSpec: in.DaemonSetBaseSpec,
		UpdateStrategy: v1alpha1.DaemonSetUpdateStrategy{
			Type:          in.UpdateStrategy.Type,
			RollingUpdate: (*v1alpha1.RollingUpdateDaemonSet)(in.UpdateStrategy.RollingUpdate),
		},
	}
	switch {
	case in.ScaleStrategy != nil && in.ScaleStrategy.PartitionedScaling:
		dst.Annotations = with(dst.Annotations, keys.ProgressiveCreatePod, "true")
	case dst.Annotations[keys.ProgressiveCreatePod] == "true":
		dst.Annotations = without(dst.Annotations, keys.ProgressiveCreatePod)
	}
	status := src.Status.DeepCopy()
	dst.Status = v1alpha1.DaemonSetStatus{DaemonSetBaseStatus: status.DaemonSetBaseStatus, DaemonSetHash: status.UpdateRevision}
}
