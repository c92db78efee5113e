package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// WorkloadSpread gives the Pods of a workload to subsets, such as zones or kinds of nodes, when they are created: the first subset that has
// room takes a Pod, which then may only run there.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ws
// +kubebuilder:printcolumn:name="WorkloadName",type="string",JSONPath=".spec.targetRef.name",description="The name of the workload."
// +kubebuilder:printcolumn:name="WorkloadKind",type="string",JSONPath=".spec.targetRef.kind",description="The kind of the workload."
// +kubebuilder:printcolumn:name="Adaptive",type="boolean",JSONPath=".spec.scheduleStrategy.type[?(@ == \"Adaptive\")]",description="Whether Pods that can't be scheduled in a subset go to another one."
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type WorkloadSpread struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec WorkloadSpreadSpec `json:"spec,omitempty"`
	// status is what was last seen of the Pods, and the ledger of those that are being created.
	// +optional
	Status WorkloadSpreadStatus `json:"status,omitempty"`
}

// WorkloadSpreadList is a list of WorkloadSpreads.
//
// +kubebuilder:object:root=true
type WorkloadSpreadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkloadSpread `json:"items"`
}

// WorkloadSpreadSpec says whose Pods are spread, and over what.
type WorkloadSpreadSpec struct {
	// targetRef is the workload whose Pods are spread, in the namespace of the WorkloadSpread: a CloneSet, Deployment, ReplicaSet, Job,
	// StatefulSet, or a kind that the ConfigMap kruise-configuration lists. It can't be changed, and a workload has one WorkloadSpread.
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind && self.name == oldSelf.name && (self.apiVersion.contains('/') ? self.apiVersion.split('/')[0] : '') == (oldSelf.apiVersion.contains('/') ? oldSelf.apiVersion.split('/')[0] : '')",message="is immutable: create another WorkloadSpread for another workload",reason="FieldValueForbidden"
	TargetReference *v1beta1.SpreadTargetReference `json:"targetRef"`
	// targetFilter narrows the Pods of the workload that are spread. Defaults to all of them.
	// +optional
	TargetFilter *v1beta1.SpreadTargetFilter `json:"targetFilter,omitempty"`
	// subsets are what Pods are given to, in the order in which they are filled unless they have weights.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.weight)) || !self.exists(s, has(s.weight))",message="must all have a weight, or none"
	Subsets []WorkloadSpreadSubset `json:"subsets" patchStrategy:"merge" patchMergeKey:"name"`
	// scheduleStrategy says what happens to Pods that can't be scheduled in their subset. Defaults to Fixed: they wait.
	// +optional
	ScheduleStrategy v1beta1.WorkloadSpreadScheduleStrategy `json:"scheduleStrategy,omitempty"`
	// surplusPolicy says what happens to Pods above the limit of their subset, such as after maxReplicas was lowered: Keep, by which they
	// stay until the workload is scaled in, or Move, by which they are deleted one by one, while all Pods of the workload are ready, as
	// long as another subset has room for the Pods that the workload creates instead. PodUnavailableBudgets are heeded. Only of CloneSets,
	// Deployments and ReplicaSets. Defaults to Keep.
	// +optional
	SurplusPolicy v1beta1.WorkloadSpreadSurplusPolicy `json:"surplusPolicy,omitempty"`
}

// WorkloadSpreadSubset is what Pods are given to.
type WorkloadSpreadSubset struct {
	// name is the name of the subset, which is unique in the WorkloadSpread.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// requiredNodeSelectorTerm is what nodes must be like for the Pods of the subset. It is added to each term that a Pod requires.
	// Defaults to any node.
	// +optional
	RequiredNodeSelectorTerm *corev1.NodeSelectorTerm `json:"requiredNodeSelectorTerm,omitempty"`
	// preferredNodeSelectorTerms are what nodes are preferred for the Pods of the subset. Defaults to none.
	// +optional
	PreferredNodeSelectorTerms []corev1.PreferredSchedulingTerm `json:"preferredNodeSelectorTerms,omitempty"`
	// tolerations are added to those of the Pods of the subset. Defaults to none.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// maxReplicas is the most Pods that the subset takes: a number, or a percentage of the Pods of the workload, rounded up; all subsets
	// have the one or the other. Of a StatefulSet it can only be a number. Defaults to as many as there are.
	// +optional
	MaxReplicas *intstr.IntOrString `json:"maxReplicas,omitempty"`
	// minReplicas is how many Pods the subset gets before any subset gets more than its own: a number, or a percentage as of maxReplicas.
	// They are the last to go when the workload is scaled in. Defaults to none.
	// +optional
	MinReplicas *intstr.IntOrString `json:"minReplicas,omitempty"`
	// weight is the share of the Pods that the subset gets, compared with the weights of the others: a Pod goes to that which has the
	// fewest for its weight, up to maxReplicas. Equal weights spread Pods evenly. All subsets have one or none has. Defaults to none: subsets are
	// filled in order.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`
	// patch is applied to the Pods of the subset when they are created, as a strategic merge patch. Its labels and annotations are given to
	// Pods that are taken over, too. Defaults to none.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Patch *runtime.RawExtension `json:"patch,omitempty"`
}

// WorkloadSpreadStatus is what was last seen of the Pods, and the ledger of those that are being created.
type WorkloadSpreadStatus struct {
	// observedGeneration is the generation of the spec that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// assigned is the number of active Pods of the workload that are in a subset.
	// +optional
	Assigned int32 `json:"assigned"`
	// unassigned is the number of active Pods of the workload that are in no subset: none had room for them, or their node is in none.
	// +optional
	Unassigned int32 `json:"unassigned"`
	// overflow is the number of assigned Pods that are above the limits of their subsets, and the first to go when the workload is scaled
	// in: they were there before the limit.
	// +optional
	Overflow int32 `json:"overflow"`
	// subsetStatuses are the subsets with the Pods of all versions.
	// +optional
	SubsetStatuses []WorkloadSpreadSubsetStatus `json:"subsetStatuses,omitempty"`
	// versionedSubsetStatuses are the subsets with the Pods of each version of the workload's template; those of workloads whose versions
	// do not count are under versionIgnored.
	// +optional
	VersionedSubsetStatuses map[string][]WorkloadSpreadSubsetStatus `json:"versionedSubsetStatuses,omitempty"`
	// podVersion is the resource version of the newest Pod that was taken out of creatingPods because it was seen. Only who has seen as
	// much may count Pods anew.
	// +optional
	PodVersion string `json:"podVersion,omitempty"`
}

// WorkloadSpreadSubsetStatus is what was last seen of the Pods of a subset.
type WorkloadSpreadSubsetStatus struct {
	// name is the name of the subset.
	Name string `json:"name"`
	// conditions are what else is to be known of the subset: Schedulable is False for five minutes after Pods could not be scheduled there.
	// +optional
	Conditions []WorkloadSpreadSubsetCondition `json:"conditions,omitempty"`
	// replicas is the number of Pods that are neither over nor on their way out.
	Replicas int32 `json:"replicas"`
	// missingReplicas is the number of Pods that the subset has room for: 0 if it is full, -1 if it takes as many as there are.
	MissingReplicas int32 `json:"missingReplicas"`
	// creatingPods is the room that is given to Pods that have not been seen yet, or set aside by a manager for those to come, with the
	// time. What is not seen 30 seconds later is room again.
	// +optional
	CreatingPods map[string]metav1.Time `json:"creatingPods,omitempty"`
	// deletingPods are Pods that are expected to go, with the time. Only the original writes them; they are heeded for 15 seconds.
	// +optional
	DeletingPods map[string]metav1.Time `json:"deletingPods,omitempty"`
}

// WorkloadSpreadSubsetCondition is a condition of a subset.
type WorkloadSpreadSubsetCondition struct {
	// type is the type of the condition.
	Type string `json:"type"`
	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason says in a word why.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says why.
	// +optional
	Message string `json:"message,omitempty"`
}
