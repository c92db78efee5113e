package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// BroadcastJob runs one Pod to completion on every node that fits its template.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bcj
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desired",description="The number of nodes that the job is for."
// +kubebuilder:printcolumn:name="Active",type="integer",JSONPath=".status.active",description="The number of Pods under way."
// +kubebuilder:printcolumn:name="Succeeded",type="integer",JSONPath=".status.succeeded",description="The number of Pods that have ended well."
// +kubebuilder:printcolumn:name="Failed",type="integer",JSONPath=".status.failed",description="The number of Pods that have failed."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the BroadcastJob was created."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",optionalOldSelf=true,message="metadata.name must be no more than 63 characters, without a dot: it becomes the value of a label of the Pods"
type BroadcastJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec BroadcastJobSpec `json:"spec,omitempty"`
	// status is what was last seen; it stays as it is once the job has finished.
	// +optional
	Status BroadcastJobStatus `json:"status,omitempty"`
}

// BroadcastJobList is a list of BroadcastJobs.
//
// +kubebuilder:object:root=true
type BroadcastJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BroadcastJob `json:"items"`
}

// BroadcastJobSpec is what a BroadcastJob is to do.
type BroadcastJobSpec struct {
	// parallelism is the most Pods under way at the same time: a number, or a percentage of the nodes that the job is for, rounded up. With
	// 0 no Pod is created. Defaults to 2147483647: all at once.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^[0-9]{1,9}%$')",message="must be 0 or more, or a percentage such as \"20%\""
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`
	// template describes the Pods, and by its nodeSelector, node affinity, tolerations and resource requests the nodes that get one. Its
	// restartPolicy must be Never or OnFailure. A change concerns only Pods that are created later.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template"`
	// completionPolicy says when the job has finished. Defaults to type Always.
	// +optional
	CompletionPolicy BroadcastJobCompletionPolicy `json:"completionPolicy,omitempty"`
	// paused stops the creation of Pods; those that are there run on, and the deadline comes nearer. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// failurePolicy says what becomes of the job when a Pod fails. Defaults to type FailFast.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
}

// FailurePolicyType says what becomes of a BroadcastJob when a Pod fails.
// +kubebuilder:validation:Enum=Continue;FailFast;Pause
type FailurePolicyType string

const (
	// FailurePolicyTypeContinue goes on with the other nodes.
	FailurePolicyTypeContinue FailurePolicyType = "Continue"
	// FailurePolicyTypeFailFast ends the job, and the Pods that are under way.
	FailurePolicyTypeFailFast FailurePolicyType = "FailFast"
	// FailurePolicyTypePause pauses the job until a user lets it go on.
	FailurePolicyTypePause FailurePolicyType = "Pause"
)

// FailurePolicy says what becomes of a BroadcastJob when a Pod fails.
type FailurePolicy struct {
	// type is FailFast, which ends the job with the first failure, Continue, which goes on with the other nodes, or Pause, which sets
	// spec.paused with each failure. Defaults to FailFast.
	// +optional
	Type FailurePolicyType `json:"type,omitempty"`
	// restartLimit is how many restarts of containers of one Pod are put up with before that Pod counts as failed. It matters only with
	// restartPolicy OnFailure. Defaults to 0: the first restart is a failure.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RestartLimit int32 `json:"restartLimit,omitempty"`
}

// BroadcastJobCompletionPolicy says when a BroadcastJob has finished, and what becomes of it then.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Never' || !has(self.activeDeadlineSeconds)",message="activeDeadlineSeconds can only work with Always CompletionPolicyType",fieldPath=".activeDeadlineSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Never' || !has(self.ttlSecondsAfterFinished)",message="ttlSecondsAfterFinished can only work with Always CompletionPolicyType",fieldPath=".ttlSecondsAfterFinished"
type BroadcastJobCompletionPolicy struct {
	// type is Always, which finishes the job when every node is done, or Never, which keeps it for the nodes that are still to come.
	// Defaults to Always.
	// +optional
	Type CompletionPolicyType `json:"type,omitempty"`
	// activeDeadlineSeconds is how long the job may take since status.startTime, in seconds; it fails then, and the Pods under way are
	// deleted. It is not allowed with Never. Defaults to no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// ttlSecondsAfterFinished is how long the job is kept after it has finished, in seconds; it is deleted then, with its Pods. It is not
	// allowed with Never. Defaults to for ever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// BroadcastJobPhase is how far a BroadcastJob has come.
type BroadcastJobPhase string

// Wire: the phases are stored in lower case.
const (
	// BroadcastJobRunning creates Pods, or waits for them.
	BroadcastJobRunning BroadcastJobPhase = "running"
	// BroadcastJobPaused creates no Pods until a user lets it go on.
	BroadcastJobPaused BroadcastJobPhase = "paused"
	// BroadcastJobCompleted is over: every node is done.
	BroadcastJobCompleted BroadcastJobPhase = "completed"
	// BroadcastJobFailed is over: a Pod failed, or the deadline passed.
	BroadcastJobFailed BroadcastJobPhase = "failed"
)

// BroadcastJobStatus is what was last seen of a BroadcastJob.
type BroadcastJobStatus struct {
	// conditions tell that the job is over: Complete or Failed, each with the status True.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []BroadcastJobCondition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// startTime is when the job was first looked after.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the job finished, well or badly.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// active is the number of Pods under way.
	// +optional
	Active int32 `json:"active"`
	// succeeded is the number of Pods that have ended well.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed is the number of Pods that have failed, those included that were deleted because the job failed.
	// +optional
	Failed int32 `json:"failed"`
	// desired is the number of nodes that the job is for: those that its template fits, and those that have a Pod of it.
	// +optional
	Desired int32 `json:"desired"`
	// phase is running, paused, completed or failed.
	// +optional
	Phase BroadcastJobPhase `json:"phase,omitempty"`
}

// BroadcastJobConditionType names a condition of a BroadcastJob.
type BroadcastJobConditionType string

const (
	// BroadcastJobComplete is True when every node is done.
	BroadcastJobComplete BroadcastJobConditionType = "Complete"
	// BroadcastJobFailure is True when a failed Pod or the deadline has ended the job.
	BroadcastJobFailure BroadcastJobConditionType = "Failed"
)

// BroadcastJobCondition is a fact about a BroadcastJob.
type BroadcastJobCondition struct {
	// type is Complete or Failed.
	Type BroadcastJobConditionType `json:"type"`
	// status is True.
	Status corev1.ConditionStatus `json:"status"`
	// lastProbeTime is when the fact was last looked at.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// lastTransitionTime is when it became true.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is the type again.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says why in words.
	// +optional
	Message string `json:"message,omitempty"`
}
