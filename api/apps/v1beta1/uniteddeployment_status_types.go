package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnitedDeploymentStatus is what was last seen of a UnitedDeployment.
type UnitedDeploymentStatus struct {
	UnitedDeploymentBaseStatus `json:",inline"`

	// updatedRevision is the name of the revision of the newest template.
	// +optional
	UpdatedRevision string `json:"updatedRevision,omitempty"`
}

// UnitedDeploymentBaseStatus is what both versions say in status.
type UnitedDeploymentBaseStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of Pods in all subsets, without those that are reserved.
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of Pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// updatedReplicas is the number of Pods of the newest template.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas is the number of Pods of the newest template that are ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas,omitempty"`

	// reservedPods is the number of Pods that wait for a node while others stand in for them.
	// +optional
	ReservedPods int32 `json:"reservedPods,omitempty"`

	// collisionCount goes into the hash of a revision, so that a taken name can be avoided.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// currentRevision is the name of the last revision that was rolled out to all Pods.
	CurrentRevision string `json:"currentRevision"`

	// wave is the name of the wave of updateStrategy.waves that is under way, or after which the rollout pauses. It is empty when none is.
	// +optional
	Wave string `json:"wave,omitempty"`

	// subsetStatuses tell of each subset, in the order of the spec.
	// +optional
	// +listType=atomic
	SubsetStatuses []UnitedDeploymentSubsetStatus `json:"subsetStatuses,omitempty"`

	// memberClusters are the other clusters that hold, or may hold, workloads of the UnitedDeployment. A cluster is recorded before it is
	// first written to, and stays until nothing is left there.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	MemberClusters []MemberCluster `json:"memberClusters,omitempty"`

	// conditions tell how subsets and rollout stand.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []UnitedDeploymentCondition `json:"conditions,omitempty"`

	// labelSelector is the selector as text, for the scale subresource. With reserveUnschedulablePods it leaves out reserved Pods.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// UnitedDeploymentSubsetStatus is what was last seen of one subset.
type UnitedDeploymentSubsetStatus struct {
	// name of the subset.
	// +optional
	Name string `json:"name,omitempty"`
	// replicas is the number of Pods that the subset is to have. In another cluster it is no more than what was seen to be written there.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// readyReplicas is the number of its Pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// partition is the number of its Pods that are to stay at their old template.
	// +optional
	Partition int32 `json:"partition,omitempty"`
	// reservedPods is the number of its Pods that wait for a node while others stand in for them.
	// +optional
	ReservedPods int32 `json:"reservedPods,omitempty"`
	// cluster is the namespace and name, with a slash between them, of the cluster object of the subset; empty for the hub.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// lastObservedTime is when the cluster had last been read at the time of this status; not for the hub.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
	// observed is what was last seen of the subset in its cluster: it counts while the cluster can't be read. Not for the hub, nor before
	// the cluster was first read.
	// +optional
	Observed *SubsetObservation `json:"observed,omitempty"`
	// conditions tell whether Pods of the subset can be scheduled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []UnitedDeploymentSubsetCondition `json:"conditions,omitempty"`
}

// UnitedDeploymentSubsetConditionType names a condition of a subset.
type UnitedDeploymentSubsetConditionType string

// UnitedDeploymentSubsetSchedulable tells whether Pods of the subset can be scheduled; it is there only with the type Adaptive.
const UnitedDeploymentSubsetSchedulable UnitedDeploymentSubsetConditionType = "Schedulable"

// UnitedDeploymentSubsetCondition is one aspect of a subset's state.
type UnitedDeploymentSubsetCondition struct {
	// type of the condition.
	Type UnitedDeploymentSubsetConditionType `json:"type"`
	// status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastTransitionTime is when the status of the condition last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is one word for programs to read.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a sentence for people to read.
	// +optional
	Message string `json:"message,omitempty"`
}

// UnitedDeploymentConditionType names a condition of a UnitedDeployment.
type UnitedDeploymentConditionType string

const (
	// UnitedDeploymentSubsetProvisioned is True when every subset has its workload and no workload is left of others.
	UnitedDeploymentSubsetProvisioned UnitedDeploymentConditionType = "SubsetProvisioned"
	// UnitedDeploymentSubsetUpdated is True when the workloads of all subsets are as they are wanted. While waves, a pause or
	// maxUnavailable hold subsets back it is False, and its message says what ends that.
	UnitedDeploymentSubsetUpdated UnitedDeploymentConditionType = "SubsetUpdated"
	// UnitedDeploymentSubsetFailure is True while the workload of a subset reports a failure, or could not be written.
	UnitedDeploymentSubsetFailure UnitedDeploymentConditionType = "SubsetFailure"
	// UnitedDeploymentUpdated is True when all Pods are of the newest template and ready.
	UnitedDeploymentUpdated UnitedDeploymentConditionType = "UnitedDeploymentUpdated"
	// UnitedDeploymentReplicasAdjusted is True while the replicas that the subsets specify do not add up to those of the UnitedDeployment,
	// so that each subset gets its share of them instead.
	UnitedDeploymentReplicasAdjusted UnitedDeploymentConditionType = "SubsetReplicasAdjusted"
)

// UnitedDeploymentCondition is one aspect of a UnitedDeployment's state.
type UnitedDeploymentCondition struct {
	// type of the condition.
	Type UnitedDeploymentConditionType `json:"type"`
	// status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastTransitionTime is when the status of the condition last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is one word for programs to read.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a sentence for people to read.
	// +optional
	Message string `json:"message,omitempty"`
}
