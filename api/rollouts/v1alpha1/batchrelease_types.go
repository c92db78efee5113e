package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// BatchRelease moves the Pods of a workload from one revision to another, batch by batch. Rollouts create it under their own name; nobody
// else has to write it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="KIND",type="string",JSONPath=".spec.targetReference.workloadRef.kind",description="The kind of the workload."
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
	Status v1beta1.BatchReleaseBaseStatus `json:"status,omitempty"`
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
	// targetReference names the workload.
	// +optional
	TargetRef WorkloadObjectRef `json:"targetReference,omitempty"`
	// releasePlan is the plan of the release. The annotation rollouts.kruise.io/rolling-style, in lower case, says the rollingStyle too.
	ReleasePlan v1beta1.ReleasePlan `json:"releasePlan"`
}
