package convert

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// unknownReason is the reason of a condition that has none in the older version: the hub version needs one.
//
// Wire: clients of the original compare it.
const unknownReason = "Unknown"

// WorkloadSpreadToHub fills dst with what src means.
func WorkloadSpreadToHub(src *v1alpha1.WorkloadSpread, dst *v1beta1.WorkloadSpread) {
	src = src.DeepCopy()
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = v1beta1.WorkloadSpreadSpec{
		TargetReference: src.Spec.TargetReference, TargetFilter: src.Spec.TargetFilter, ScheduleStrategy: src.Spec.ScheduleStrategy,
		SurplusPolicy: src.Spec.SurplusPolicy,
		Subsets:       each(src.Spec.Subsets, subsetToHub),
	}
	dst.Status = v1beta1.WorkloadSpreadStatus{
		ObservedGeneration: src.Status.ObservedGeneration, PodVersion: src.Status.PodVersion,
		Assigned: src.Status.Assigned, Unassigned: src.Status.Unassigned, Overflow: src.Status.Overflow,
		SubsetStatuses:          each(src.Status.SubsetStatuses, subsetStatusToHub),
		VersionedSubsetStatuses: ofEach(src.Status.VersionedSubsetStatuses, subsetStatusToHub),
	}
}

// WorkloadSpreadFromHub fills dst with what src means. The generation that a condition is of is dropped: the older version has no field for
// it, and it is that of the status.
func WorkloadSpreadFromHub(src *v1beta1.WorkloadSpread, dst *v1alpha1.WorkloadSpread) {
	src = src.DeepCopy()
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = v1alpha1.WorkloadSpreadSpec{
		TargetReference: src.Spec.TargetReference, TargetFilter: src.Spec.TargetFilter, ScheduleStrategy: src.Spec.ScheduleStrategy,
		SurplusPolicy: src.Spec.SurplusPolicy,
		Subsets:       each(src.Spec.Subsets, subsetFromHub),
	}
	dst.Status = v1alpha1.WorkloadSpreadStatus{
		ObservedGeneration: src.Status.ObservedGeneration, PodVersion: src.Status.PodVersion,
		Assigned: src.Status.Assigned, Unassigned: src.Status.Unassigned, Overflow: src.Status.Overflow,
		SubsetStatuses:          each(src.Status.SubsetStatuses, subsetStatusFromHub),
		VersionedSubsetStatuses: ofEach(src.Status.VersionedSubsetStatuses, subsetStatusFromHub),
	}
}

func subsetToHub(s v1alpha1.WorkloadSpreadSubset) v1beta1.WorkloadSpreadSubset {
	return v1beta1.WorkloadSpreadSubset{
		Name: s.Name, RequiredNodeSelector: s.RequiredNodeSelectorTerm, PreferredNodeSelector: s.PreferredNodeSelectorTerms,
		Tolerations: s.Tolerations, MaxReplicas: s.MaxReplicas, MinReplicas: s.MinReplicas, Weight: s.Weight, Patch: s.Patch,
	}
}

func subsetFromHub(s v1beta1.WorkloadSpreadSubset) v1alpha1.WorkloadSpreadSubset {
	return v1alpha1.WorkloadSpreadSubset{
		Name: s.Name, RequiredNodeSelectorTerm: s.RequiredNodeSelector, PreferredNodeSelectorTerms: s.PreferredNodeSelector,
		Tolerations: s.Tolerations, MaxReplicas: s.MaxReplicas, MinReplicas: s.MinReplicas, Weight: s.Weight, Patch: s.Patch,
	}
}

func subsetStatusToHub(s v1alpha1.WorkloadSpreadSubsetStatus) v1beta1.WorkloadSpreadSubsetStatus {
	return v1beta1.WorkloadSpreadSubsetStatus{
		Name: s.Name, Replicas: s.Replicas, MissingReplicas: s.MissingReplicas, CreatingPods: s.CreatingPods, DeletingPods: s.DeletingPods,
		Conditions: each(s.Conditions, func(c v1alpha1.WorkloadSpreadSubsetCondition) metav1.Condition {
			return metav1.Condition{
				Type: c.Type, Status: metav1.ConditionStatus(c.Status), LastTransitionTime: c.LastTransitionTime,
				Reason: cmp.Or(c.Reason, unknownReason), Message: c.Message,
			}
		}),
	}
}

func subsetStatusFromHub(s v1beta1.WorkloadSpreadSubsetStatus) v1alpha1.WorkloadSpreadSubsetStatus {
	return v1alpha1.WorkloadSpreadSubsetStatus{
		Name: s.Name, Replicas: s.Replicas, MissingReplicas: s.MissingReplicas, CreatingPods: s.CreatingPods, DeletingPods: s.DeletingPods,
		Conditions: each(s.Conditions, func(c metav1.Condition) v1alpha1.WorkloadSpreadSubsetCondition {
			return v1alpha1.WorkloadSpreadSubsetCondition{
				Type: c.Type, Status: corev1.ConditionStatus(c.Status), LastTransitionTime: c.LastTransitionTime,
				Reason: c.Reason, Message: c.Message,
			}
		}),
	}
}

// each returns what a function makes of each item; nil of nil.
func each[S, D any](items []S, of func(S) D) []D {
	if items == nil {
		return nil
	}
	out := make([]D, len(items))
	for i := range items {
		out[i] = of(items[i])
	}
	return out
}

// ofEach does the same with the lists of a map.
func ofEach[S, D any](lists map[string][]S, of func(S) D) map[string][]D {
	if lists == nil {
		return nil
	}
	out := make(map[string][]D, len(lists))
	for key, items := range lists {
		out[key] = each(items, of)
	}
	return out
}
