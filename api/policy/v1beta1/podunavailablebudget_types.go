package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PodUnavailableBudget keeps so many Pods of an application available, whoever wants to delete, evict, update in place, resize or mark them
// as unavailable.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pub
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Allowed",type="integer",JSONPath=".status.unavailableAllowed",description="The number of Pods that may be made unavailable now."
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.currentAvailable",description="The number of Pods that are available."
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desiredAvailable",description="The number of Pods that are to stay available."
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.totalReplicas",description="The number of Pods that there should be."
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec PodUnavailableBudgetSpec `json:"spec,omitempty"`
	// status is what was last seen, and the ledger of what was permitted since.
	// +optional
	Status PodUnavailableBudgetStatus `json:"status,omitempty"`
}

// PodUnavailableBudgetList is a list of PodUnavailableBudgets.
//
// +kubebuilder:object:root=true
type PodUnavailableBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodUnavailableBudget `json:"items"`
}

// PodUnavailableBudgetBaseSpec is what both versions say in spec.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) != has(self.targetRef)",message="exactly one of selector and targetRef is needed"
// +kubebuilder:validation:XValidation:rule="has(self.maxUnavailable) != has(self.minAvailable)",message="exactly one of maxUnavailable and minAvailable is needed"
// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector) && (!has(self.selector) || self.selector == oldSelf.selector)",message="is immutable: create another budget to guard other Pods",fieldPath=".selector",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="has(self.targetRef) == has(oldSelf.targetRef) && (!has(self.targetRef) || self.targetRef == oldSelf.targetRef)",message="is immutable: create another budget to guard another workload",fieldPath=".targetRef",reason="FieldValueForbidden"
type PodUnavailableBudgetBaseSpec struct {
	// selector selects the guarded Pods by their labels, in the namespace of the budget: right for an application of several workloads. It
	// can't be changed. Exactly one of selector and targetRef is needed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="must not be empty: that would select every Pod of the namespace"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// targetRef is the workload whose Pods are guarded: any kind with a scale subresource, in the namespace of the budget. It can't be
	// changed.
	// +optional
	TargetReference *TargetReference `json:"targetRef,omitempty"`
	// maxUnavailable is the most Pods that may be unavailable: a number, or a percentage of status.totalReplicas, rounded up. Exactly one
	// of maxUnavailable and minAvailable is needed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be 0 or more, or a percentage of up to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// minAvailable is the fewest Pods that are to stay available: a number, or a percentage of status.totalReplicas, rounded up.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be 0 or more, or a percentage of up to 100%"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// capToMaxUnavailable keeps status.unavailableAllowed at or below maxUnavailable also while there are more Pods than
	// status.totalReplicas, as during a surge. It says nothing beside minAvailable. Defaults to false: Pods over the number may all go.
	// +optional
	CapToMaxUnavailable bool `json:"capToMaxUnavailable,omitempty"`
}

// PodUnavailableBudgetSpec says which Pods are guarded, and how many of them are to stay available.
type PodUnavailableBudgetSpec struct {
	PodUnavailableBudgetBaseSpec `json:",inline"`

	// protectOperations are what the budget guards against. Defaults to DELETE, UPDATE and EVICT.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	ProtectOperations []PubOperation `json:"protectOperations,omitempty"`
	// protectTotalReplicas stands in for the number of Pods that there should be, instead of the replicas of the workloads: for workloads
	// without a scale subresource, and for Pods without a workload. At least 1. Defaults to what the workloads say.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProtectTotalReplicas *int32 `json:"protectTotalReplicas,omitempty"`
	// ignoredPodSelector selects, by labels, Pods that the budget does not guard although they are its own; they are counted with the
	// others. Defaults to none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="must not be empty: leave it out to ignore no Pods"
	IgnoredPodSelector *metav1.LabelSelector `json:"ignoredPodSelector,omitempty"`
}

// TargetReference names a workload in the namespace of the budget.
type TargetReference struct {
	// apiVersion is the group and version of the workload, such as apps/v1. Budgets compare only the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="!self.matches('/.*/')",message="must be a group and a version, such as apps/v1"
	APIVersion string `json:"apiVersion"`
	// kind is the kind of the workload, such as Deployment.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// name is the name of the workload.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// PubOperation is what a budget guards against.
// +kubebuilder:validation:Enum=DELETE;UPDATE;EVICT;RESIZE
type PubOperation string

const (
	// PubDeleteOperation is the deletion of a Pod.
	PubDeleteOperation PubOperation = "DELETE"
	// PubUpdateOperation is a change of a Pod's spec, or the label that marks it as unavailable.
	PubUpdateOperation PubOperation = "UPDATE"
	// PubEvictOperation is the eviction of a Pod.
	PubEvictOperation PubOperation = "EVICT"
	// PubResizeOperation is a change of the resources of containers that restarts none of them.
	PubResizeOperation PubOperation = "RESIZE"
)

// PodUnavailableBudgetStatus is what was last seen of the Pods, and the ledger of what was permitted since. A permission writes the ledger
// at once, so that no two permissions count on the same Pod.
type PodUnavailableBudgetStatus struct {
	// observedGeneration is the generation of the budget that the numbers are of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`
	// disruptedPods are the Pods whose deletion or eviction was permitted and has not been seen yet, with the time of the permission. An
	// entry leaves with its Pod, or after 20 seconds.
	// +optional
	DisruptedPods map[string]metav1.Time `json:"disruptedPods,omitempty"`
	// unavailablePods are the Pods whose update was permitted and may not be seen yet, with the time of the permission. An entry leaves
	// with its Pod, or after 10 seconds; then the state of the Pod counts.
	// +optional
	UnavailablePods map[string]metav1.Time `json:"unavailablePods,omitempty"`
	// unavailableAllowed is the number of Pods that may be made unavailable now: currentAvailable less desiredAvailable, at least 0.
	UnavailableAllowed int32 `json:"unavailableAllowed"`
	// currentAvailable is the number of Pods that are available and not in the ledger.
	CurrentAvailable int32 `json:"currentAvailable"`
	// desiredAvailable is the number of Pods that are to stay available.
	DesiredAvailable int32 `json:"desiredAvailable"`
	// totalReplicas is the number of Pods that there should be, by the replicas of the workloads.
	TotalReplicas int32 `json:"totalReplicas"`
	// conditions are what else is to be known: TotalReplicasUnknown is there while a workload does not say how many Pods it should have and
	// those that are there are counted, SurplusPods while there are more Pods than totalReplicas.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Types of conditions of a PodUnavailableBudget.
const (
	// ConditionTotalReplicasUnknown is there, and True, while a workload does not say how many Pods it should have and those that are there
	// are counted.
	ConditionTotalReplicasUnknown = "TotalReplicasUnknown"
	// ConditionSurplusPods is there, and True, while there are more Pods than status.totalReplicas, so that more may go than maxUnavailable
	// says.
	ConditionSurplusPods = "SurplusPods"
)
