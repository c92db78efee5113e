package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EphemeralJob adds ephemeral containers to Pods that run, a few Pods at a time, and waits until those containers have ended: to debug,
// inspect or repair Pods in place.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ejob
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.phase",description="How far the job has come."
// +kubebuilder:printcolumn:name="MATCH",type="integer",JSONPath=".status.match",description="The number of Pods that the job is for."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of Pods in which all containers of the job have ended well."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of Pods in which a container of the job has failed."
// +kubebuilder:printcolumn:name="RUNNING",type="integer",JSONPath=".status.running",description="The number of Pods in which a container of the job runs."
// +kubebuilder:printcolumn:name="WAITING",type="integer",JSONPath=".status.waiting",description="The number of Pods that have the containers of the job, none of which runs yet."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the EphemeralJob was created."
type EphemeralJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is which containers are added, to which Pods, and how fast.
	// +optional
	Spec EphemeralJobSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status EphemeralJobStatus `json:"status,omitempty"`
}

// EphemeralJobList is a list of EphemeralJobs.
//
// +kubebuilder:object:root=true
type EphemeralJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EphemeralJob `json:"items"`
}

// EphemeralJobSpec is which containers are added, to which Pods, and how fast.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="is immutable: make another EphemeralJob for other Pods",fieldPath=".selector"
type EphemeralJobSpec struct {
	// selector selects the Pods, of the same namespace, by label. It must not be empty, and can't be changed.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="name the labels of the Pods: an empty selector would add containers to every Pod of the namespace",reason="FieldValueRequired"
	Selector *metav1.LabelSelector `json:"selector"`
	// replicas is the number of Pods that get the containers: those first that have a node, and of these the oldest. Defaults to all that
	// the selector matches.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// parallelism is the most Pods in which containers of the job run, or are about to, at the same time. Defaults to 1; 0 adds none.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Parallelism *int32 `json:"parallelism,omitempty"`
	// template is what is added to each Pod. It can't be changed.
	Template EphemeralContainerTemplateSpec `json:"template"`
	// paused stops containers from being added to further Pods; those that are there run on, and the deadline comes nearer. Defaults to
	// false.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// activeDeadlineSeconds is how long the job may take since status.startTime, in seconds, pauses included; it fails then. Containers
	// that still run can't be stopped, and run on until they end or their Pod does. Defaults to no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// ttlSecondsAfterFinished is how long the job is kept after status.completionTime, in seconds; it is deleted then. Its containers stay
	// in their Pods. Defaults to 1800.
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// EphemeralContainerTemplateSpec is what is added to each Pod.
type EphemeralContainerTemplateSpec struct {
	// ephemeralContainers are the containers, at least one and at most 64, with the fields of an ephemeral container of a Pod: ports,
	// resources, probes, lifecycle, restart policies and mounts of sub-paths are not among them. Pods that have a container of one of these
	// names are left out, and so are those without the container that targetContainerName names. Each container is given the environment
	// variable KRUISE_EJOB_ID, the UID of the job.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	EphemeralContainers []corev1.EphemeralContainer `json:"ephemeralContainers"`
}

// EphemeralJobPhase is how far an EphemeralJob has come.
type EphemeralJobPhase string

const (
	// EphemeralJobWaiting has no Pod, or none in which a container has started.
	EphemeralJobWaiting EphemeralJobPhase = "Waiting"
	// EphemeralJobRunning is under way.
	EphemeralJobRunning EphemeralJobPhase = "Running"
	// EphemeralJobSucceeded is over: all containers have ended well in all Pods.
	EphemeralJobSucceeded EphemeralJobPhase = "Succeeded"
	// EphemeralJobFailed is over: a container failed in one of the Pods at least, or the deadline passed.
	EphemeralJobFailed EphemeralJobPhase = "Failed"
	// EphemeralJobPaused adds no containers until a user lets it go on, and none runs.
	EphemeralJobPaused EphemeralJobPhase = "Paused"
	// EphemeralJobError can't be carried out, because its spec can't be read.
	EphemeralJobError EphemeralJobPhase = "Error"
	// EphemeralJobUnknown is a phase that older controllers stored.
	EphemeralJobUnknown EphemeralJobPhase = "Unknown"
)

// EphemeralJobStatus is what was last seen of an EphemeralJob.
type EphemeralJobStatus struct {
	// conditions are the facts that are true of the job: Initialized, JobSucceeded, JobFailed, JobError, MatchedEmpty.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []EphemeralJobCondition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// startTime is when the job was first looked after.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the job was over, well or badly.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// phase is Waiting, Running, Paused, Succeeded, Failed or Error.
	// +optional
	Phase EphemeralJobPhase `json:"phase,omitempty"`
	// match is the number of Pods that the job is for: those that have its containers, and those that are to get them.
	// +optional
	Match int32 `json:"match"`
	// succeeded is the number of Pods in which all containers of the job have ended well.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed is the number of Pods in which a container of the job has ended badly, or can't be started.
	// +optional
	Failed int32 `json:"failed"`
	// running is the number of Pods in which a container of the job runs.
	// +optional
	Running int32 `json:"running"`
	// waiting is the number of Pods that have the containers of the job, none of which runs yet.
	// +optional
	Waiting int32 `json:"waiting"`
}

// EphemeralJobConditionType names a condition of an EphemeralJob.
type EphemeralJobConditionType string

const (
	// EphemeralJobInitialized is true once the job is looked after.
	EphemeralJobInitialized EphemeralJobConditionType = "Initialized"
	// EphemeralJobIsSucceeded is true when the job has succeeded.
	EphemeralJobIsSucceeded EphemeralJobConditionType = "JobSucceeded"
	// EphemeralJobIsFailed is true when the job has failed, and, with the reason CreateFailed, while containers are refused that it wants
	// to add.
	EphemeralJobIsFailed EphemeralJobConditionType = "JobFailed"
	// EphemeralJobIsInError is true while the spec can't be read.
	EphemeralJobIsInError EphemeralJobConditionType = "JobError"
	// EphemeralJobMatchedEmpty is true while the job has no Pods.
	EphemeralJobMatchedEmpty EphemeralJobConditionType = "MatchedEmpty"
)

// EphemeralJobCondition is a fact about an EphemeralJob.
type EphemeralJobCondition struct {
	// type is Initialized, JobSucceeded, JobFailed, JobError or MatchedEmpty.
	Type EphemeralJobConditionType `json:"type"`
	// status is True: what is not true is left out.
	Status corev1.ConditionStatus `json:"status"`
	// lastProbeTime is when the fact became what it is.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// lastTransitionTime is when it became true.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is a word for why.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says why in words.
	// +optional
	Message string `json:"message,omitempty"`
}
