package steer

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
)

// maxOrdinal is the partition that keeps all Pods of a kind whose partition is a number.
//
// Wire: it is written to users' objects.
const maxOrdinal = 32767

// cloneSet steers CloneSets. A step by percentage gives a percentage, so that the ratio survives scaling.
func cloneSet() Kind {
	return partitioned{
		kind: "cloneset", label: keys.PodTemplateHash, freeze: intstr.FromString("100%"), value: release.CloneSetPartition,
		read: func(workload Object) reading {
			set := workload.(*v1beta1.CloneSet)
			r := reading{
				replicas: replicasOf(set.Spec.Replicas), minReadySeconds: set.Spec.MinReadySeconds,
				onDelete:   set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetStrategyType,
				generation: set.Generation, observed: set.Status.ObservedGeneration,
				current: set.Status.CurrentRevision, update: set.Status.UpdateRevision,
			}
			if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
				r.partition = rolling.Partition
			}
			return r
		},
		write: func(workload Object, partition *intstr.IntOrString) {
			strategy := &workload.(*v1beta1.CloneSet).Spec.UpdateStrategy
			rolling := ptr.Deref(strategy.RollingUpdate, v1beta1.RollingUpdateCloneSetStrategy{})
			rolling.Partition = partition
			strategy.RollingUpdate = unlessZero(rolling)
		},
	}
}

// nativeStatefulSet steers StatefulSets of Kubernetes.
func nativeStatefulSet() Kind {
	return partitioned{
		kind: "statefulset", label: appsv1.ControllerRevisionHashLabelKey, freeze: intstr.FromInt32(maxOrdinal), value: keepNumber,
		read: func(workload Object) reading {
			set := workload.(*appsv1.StatefulSet)
			r := reading{
				replicas: replicasOf(set.Spec.Replicas), minReadySeconds: set.Spec.MinReadySeconds,
				onDelete:   set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
				generation: set.Generation, observed: set.Status.ObservedGeneration,
				current: set.Status.CurrentRevision, update: set.Status.UpdateRevision,
			}
			if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
				r.partition = number(rolling.Partition)
			}
			return r
		},
		write: func(workload Object, partition *intstr.IntOrString) {
			strategy := &workload.(*appsv1.StatefulSet).Spec.UpdateStrategy
			rolling := ptr.Deref(strategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
			if rolling.Partition = numberOf(partition); partition == nil {
				rolling.Partition = ptr.To[int32](0) // which the API server writes where it is left out
			}
			strategy.RollingUpdate = &rolling
		},
	}
}

// statefulSet steers Advanced StatefulSets.
func statefulSet() Kind {
	return partitioned{
		kind: "statefulset", label: appsv1.ControllerRevisionHashLabelKey, freeze: intstr.FromInt32(maxOrdinal), value: keepNumber,
		read: func(workload Object) reading {
			set := workload.(*v1beta1.StatefulSet)
			r := reading{
				replicas:   replicasOf(set.Spec.Replicas),
				onDelete:   set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
				generation: set.Generation, observed: set.Status.ObservedGeneration,
				current: set.Status.CurrentRevision, update: set.Status.UpdateRevision,
			}
			if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
				r.partition, r.minReadySeconds = number(rolling.Partition), ptr.Deref(rolling.MinReadySeconds, 0)
			}
			return r
		},
		write: func(workload Object, partition *intstr.IntOrString) {
			strategy := &workload.(*v1beta1.StatefulSet).Spec.UpdateStrategy
			rolling := ptr.Deref(strategy.RollingUpdate, v1beta1.RollingUpdateStatefulSetStrategy{})
			rolling.Partition = numberOf(partition)
			strategy.RollingUpdate = unlessZero(rolling)
		},
	}
}

// daemonSet steers Advanced DaemonSets. Their status does not tell the revision that they come from, so their Pods do.
func daemonSet() Kind {
	return partitioned{
		kind: "daemonset", label: appsv1.ControllerRevisionHashLabelKey, freeze: intstr.FromInt32(maxOrdinal), down: true, value: keepNumber,
		read: func(workload Object) reading {
			set := workload.(*v1beta1.DaemonSet)
			r := reading{
				replicas: set.Status.DesiredNumberScheduled, minReadySeconds: set.Spec.MinReadySeconds,
				onDelete:   set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteDaemonSetStrategyType,
				generation: set.Generation, observed: set.Status.ObservedGeneration, update: set.Status.UpdateRevision,
			}
			if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
				r.partition = rolling.Partition
			}
			return r
		},
		write: func(workload Object, partition *intstr.IntOrString) {
			strategy := &workload.(*v1beta1.DaemonSet).Spec.UpdateStrategy
			rolling := ptr.Deref(strategy.RollingUpdate, v1beta1.RollingUpdateDaemonSet{})
			rolling.Partition = partition
			strategy.RollingUpdate = unlessZero(rolling)
		},
	}
}

// unlessZero returns a pointer to a value; nil if it says nothing.
func unlessZero[T any](v T) *T {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return &v
}

func number(n *int32) *intstr.IntOrString {
	if n == nil {
		return nil
	}
	return ptr.To(intstr.FromInt32(*n))
}

func numberOf(v *intstr.IntOrString) *int32 {
	if v == nil {
		return nil
	}
	return ptr.To(v.IntVal)
}
