package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// BatchRelease moves the Pods of a workload from one revision to another, batch by batch. Rollouts create it under their own name; nobody
// else has to write it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="KIND",type="string",JSONPath=".spec.workloadRef.kind",description="The kind of the workload."
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase",description="The phase of the release."
// +kubebuilder:printcolumn:name="BATCH",type="integer",JSONPath=".status.canaryStatus.currentBatch",description="The current batch, counted from 0."
// +kubebuilder:printcolumn:name="BATCH-STATE",type="string",JSONPath=".status.canaryStatus.batchState",description="What the batch is doing."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the BatchRelease was created."
type BatchRelease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec BatchReleaseSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status BatchReleaseStatus `json:"status,omitempty"`
}

// BatchReleaseList is a list of BatchReleases.
//
// +kubebuilder:object:root=true
type BatchReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BatchRelease `json:"items"`
}

// BatchReleaseSpec says which workload is released in which batches.
type BatchReleaseSpec struct {
	// workloadRef is the workload, in the namespace of the BatchRelease.
	// +optional
	WorkloadRef WorkloadReference `json:"workloadRef,omitempty"`
	// releasePlan is the plan of the release.
	ReleasePlan ReleasePlan `json:"releasePlan"`
}

// RollingStyle is how new Pods come to be.
// +kubebuilder:validation:Enum=Canary;Partition;BlueGreen
type RollingStyle string

const (
	// RollingStyleCanary has them in a second Deployment.
	RollingStyleCanary RollingStyle = "Canary"
	// RollingStylePartition updates those of the workload itself.
	RollingStylePartition RollingStyle = "Partition"
	// RollingStyleBlueGreen has all of them beside the old ones.
	RollingStyleBlueGreen RollingStyle = "BlueGreen"
)

// FinalizingPolicy says when the end of a release is reached.
// +kubebuilder:validation:Enum=WaitResume;Immediate
type FinalizingPolicy string

const (
	// FinalizingPolicyWaitResume waits for all Pods to be updated and available.
	FinalizingPolicyWaitResume FinalizingPolicy = "WaitResume"
	// FinalizingPolicyImmediate does not wait.
	FinalizingPolicyImmediate FinalizingPolicy = "Immediate"
)

// ReleasePlan is the plan of a release.
type ReleasePlan struct {
	// batches are how many Pods are updated at the end of each batch, those of earlier batches included.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Batches []ReleaseBatch `json:"batches,omitempty"`
	// batchPartition is the last batch that may be released, counted from 0. Left out, the workload is released as a whole, and the release
	// ends.
	// +optional
	// +kubebuilder:validation:Minimum=0
	BatchPartition *int32 `json:"batchPartition,omitempty"`
	// paused stops the batch that is under way: no further Pod is updated. Rollouts set it while their spec.strategy.paused holds the
	// release. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// rolloutID names the release in labels of Pods.
	// +optional
	RolloutID string `json:"rolloutID,omitempty"`
	// failureThreshold is how many updated Pods may be not ready while a batch counts as ready: a number, or a percentage of the updated
	// Pods, rounded up. Defaults to 0.
	// +optional
	FailureThreshold *intstr.IntOrString `json:"failureThreshold,omitempty"`
	// finalizingPolicy says whether the end waits for all Pods. Defaults to Immediate.
	// +optional
	FinalizingPolicy FinalizingPolicy `json:"finalizingPolicy,omitempty"`
	// patchPodTemplateMetadata is added to the Pod template of a second Deployment.
	// +optional
	PatchPodTemplateMetadata *PatchPodTemplateMetadata `json:"patchPodTemplateMetadata,omitempty"`
	// rollingStyle is how new Pods come to be. Defaults to what enableExtraWorkloadForCanary says.
	// +optional
	RollingStyle RollingStyle `json:"rollingStyle,omitempty"`
	// enableExtraWorkloadForCanary says Canary or Partition where rollingStyle is empty. Deprecated: use rollingStyle.
	// +optional
	EnableExtraWorkloadForCanary bool `json:"enableExtraWorkloadForCanary"`
}

// ReleaseBatch is one batch of a release.
type ReleaseBatch struct {
	// canaryReplicas is how many Pods are updated at the end of the batch: a number, or a percentage of the workload's replicas, rounded
	// up.
	CanaryReplicas intstr.IntOrString `json:"canaryReplicas"`
	// podMetadata is what the Pods of the batch have beside the labels and annotations of their template, until the release is over. For
	// releases with a rolloutID in partition style only. Defaults to nothing.
	// +optional
	PodMetadata *PodMetadata `json:"podMetadata,omitempty"`
}

// BatchReleasePhase is what a BatchRelease is doing.
type BatchReleasePhase string

const (
	// BatchReleasePhasePreparing claims the workload.
	BatchReleasePhasePreparing BatchReleasePhase = "Preparing"
	// BatchReleasePhaseProgressing releases batches.
	BatchReleasePhaseProgressing BatchReleasePhase = "Progressing"
	// BatchReleasePhaseFinalizing gives the workload back.
	BatchReleasePhaseFinalizing BatchReleasePhase = "Finalizing"
	// BatchReleasePhaseCompleted is over.
	BatchReleasePhaseCompleted BatchReleasePhase = "Completed"
)

// BatchState is what a batch is doing.
type BatchState string

const (
	// BatchStateUpgrading sets how many Pods are updated.
	BatchStateUpgrading BatchState = "Upgrading"
	// BatchStateVerifying waits for them.
	BatchStateVerifying BatchState = "Verifying"
	// BatchStateReady is done.
	BatchStateReady BatchState = "Ready"
)

// BatchReleaseBaseStatus is what both versions say in status.
type BatchReleaseBaseStatus struct {
	// conditions are what else is to be known.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []RolloutCondition `json:"conditions,omitempty"`
	// canaryStatus is where the batches are.
	// +optional
	CanaryStatus BatchReleaseCanaryStatus `json:"canaryStatus,omitempty"`
	// stableRevision is the revision that the release came from.
	// +optional
	StableRevision string `json:"stableRevision,omitempty"`
	// updateRevision is the revision that the release leads to.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// observedGeneration is the generation of the BatchRelease that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// observedRolloutID is the last rolloutID that was seen.
	// +optional
	ObservedRolloutID string `json:"observedRolloutID,omitempty"`
	// observedWorkloadReplicas is the number of Pods that the workload asked for when it was seen last; -1 before.
	// +optional
	ObservedWorkloadReplicas int32 `json:"observedWorkloadReplicas,omitempty"`
	// collisionCount tells names of created objects apart.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// observedReleasePlanHash is the hash of the plan that was last seen.
	// +optional
	ObservedReleasePlanHash string `json:"observedReleasePlanHash,omitempty"`
	// phase is Preparing, Progressing, Finalizing or Completed.
	// +optional
	Phase BatchReleasePhase `json:"phase,omitempty"`
}

// BatchReleaseStatus is what was last seen of a release.
type BatchReleaseStatus struct {
	BatchReleaseBaseStatus `json:",inline"`

	// message says what the release waits for.
	// +optional
	Message string `json:"message,omitempty"`
}

// BatchReleaseCanaryStatus is where the batches of a release are.
type BatchReleaseCanaryStatus struct {
	// batchState is Upgrading, Verifying or Ready.
	// +optional
	CurrentBatchState BatchState `json:"batchState,omitempty"`
	// currentBatch is the current batch, counted from 0.
	// +optional
	CurrentBatch int32 `json:"currentBatch"`
	// batchReadyTime is when the batch became ready.
	// +optional
	BatchReadyTime *metav1.Time `json:"batchReadyTime,omitempty"`
	// updatedReplicas is the number of updated Pods.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// updatedReadyReplicas is the number of updated Pods that are ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas,omitempty"`
	// noNeedUpdateReplicas is the number of Pods that were at the wanted revision when a rollback in batches began.
	// +optional
	NoNeedUpdateReplicas *int32 `json:"noNeedUpdateReplicas,omitempty"`
}
