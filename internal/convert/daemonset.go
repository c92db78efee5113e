package convert

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// DaemonSetToHub fills dst with what src means. The annotation that stands for scaleStrategy.partitionedScaling is taken off: it says nothing
// in the hub version, and one that stayed would turn the field on again after a user of the hub version turned it off.
func DaemonSetToHub(src *v1alpha1.DaemonSet, dst *v1beta1.DaemonSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	dst.Spec = v1beta1.DaemonSetSpec{
		Selector:             in.Selector,
		Template:             in.Template,
		UpdateStrategy:       v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.DaemonSetUpdateStrategyType(in.UpdateStrategy.Type)},
		MinReadySeconds:      in.MinReadySeconds,
		BurstReplicas:        in.BurstReplicas,
		RevisionHistoryLimit: in.RevisionHistoryLimit,
		Lifecycle:            in.Lifecycle,
	}
	if in.UpdateStrategy.RollingUpdate != nil {
		dst.Spec.UpdateStrategy.RollingUpdate = nodeRolloutToHub(in.UpdateStrategy.RollingUpdate)
	}
	if src.Annotations[keys.ProgressiveCreatePod] == "true" {
		dst.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
		dst.Annotations = without(dst.Annotations, keys.ProgressiveCreatePod)
	}
	status := src.Status.DeepCopy()
	dst.Status = v1beta1.DaemonSetStatus{
		CurrentNumberScheduled: status.CurrentNumberScheduled,
		NumberMisscheduled:     status.NumberMisscheduled,
		DesiredNumberScheduled: status.DesiredNumberScheduled,
		NumberReady:            status.NumberReady,
		ObservedGeneration:     status.ObservedGeneration,
		UpdatedNumberScheduled: status.UpdatedNumberScheduled,
		NumberAvailable:        status.NumberAvailable,
		NumberUnavailable:      status.NumberUnavailable,
		CollisionCount:         status.CollisionCount,
		Conditions:             status.Conditions,
		UpdateRevision:         status.DaemonSetHash,
	}
}

// nodeRolloutToHub takes in over; the result shares its memory.
func nodeRolloutToHub(in *v1alpha1.RollingUpdateDaemonSet) *v1beta1.RollingUpdateDaemonSet {
	out := &v1beta1.RollingUpdateDaemonSet{
		Type:           v1beta1.RollingUpdateType(in.Type),
		MaxUnavailable: in.MaxUnavailable,
		MaxSurge:       in.MaxSurge,
		Selector:       in.Selector,
		Partition:      in.Partition,
		Paused:         in.Paused,
	}
	if in.InPlaceUpdateStrategy != nil {
		out.InPlaceUpdateStrategy = &v1beta1.DaemonSetInPlaceUpdateStrategy{GracePeriodSeconds: in.InPlaceUpdateStrategy.GracePeriodSeconds}
	}
	if in.Type == v1alpha1.DeprecatedSurgingRollingUpdateType {
		out.Type = v1beta1.StandardRollingUpdateType
		if out.MaxSurge == nil {
			one := intstr.FromInt32(1)
			out.MaxSurge = &one
		}
	}
	return out
}

// DaemonSetFromHub fills dst with what src means. The field scaleStrategy.partitionedScaling alone decides on the annotation that stands for it.
func DaemonSetFromHub(src *v1beta1.DaemonSet, dst *v1alpha1.DaemonSet) {
	src.ObjectMeta.DeepCopyInto(&dst.ObjectMeta)
	in := src.Spec.DeepCopy()
	dst.Spec = v1alpha1.DaemonSetSpec{
		Selector:             in.Selector,
		Template:             in.Template,
		UpdateStrategy:       v1alpha1.DaemonSetUpdateStrategy{Type: v1alpha1.DaemonSetUpdateStrategyType(in.UpdateStrategy.Type)},
		MinReadySeconds:      in.MinReadySeconds,
		BurstReplicas:        in.BurstReplicas,
		RevisionHistoryLimit: in.RevisionHistoryLimit,
		Lifecycle:            in.Lifecycle,
	}
	if rolling := in.UpdateStrategy.RollingUpdate; rolling != nil {
		out := &v1alpha1.RollingUpdateDaemonSet{
			Type:           v1alpha1.RollingUpdateType(rolling.Type),
			MaxUnavailable: rolling.MaxUnavailable,
			MaxSurge:       rolling.MaxSurge,
			Selector:       rolling.Selector,
			Partition:      rolling.Partition,
			Paused:         rolling.Paused,
		}
		if rolling.InPlaceUpdateStrategy != nil {
			out.InPlaceUpdateStrategy = &v1alpha1.DaemonSetInPlaceUpdateStrategy{GracePeriodSeconds: rolling.InPlaceUpdateStrategy.GracePeriodSeconds}
		}
		dst.Spec.UpdateStrategy.RollingUpdate = out
	}
	switch {
	case in.ScaleStrategy != nil && in.ScaleStrategy.PartitionedScaling:
		dst.Annotations = with(dst.Annotations, keys.ProgressiveCreatePod, "true")
	case dst.Annotations[keys.ProgressiveCreatePod] == "true":
		dst.Annotations = without(dst.Annotations, keys.ProgressiveCreatePod)
	}
	status := src.Status.DeepCopy()
	dst.Status = v1alpha1.DaemonSetStatus{
		CurrentNumberScheduled: status.CurrentNumberScheduled,
		NumberMisscheduled:     status.NumberMisscheduled,
		DesiredNumberScheduled: status.DesiredNumberScheduled,
		NumberReady:            status.NumberReady,
		ObservedGeneration:     status.ObservedGeneration,
		UpdatedNumberScheduled: status.UpdatedNumberScheduled,
		NumberAvailable:        status.NumberAvailable,
		NumberUnavailable:      status.NumberUnavailable,
		CollisionCount:         status.CollisionCount,
		Conditions:             status.Conditions,
		DaemonSetHash:          status.UpdateRevision,
	}
}
