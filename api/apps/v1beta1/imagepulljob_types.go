package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ImagePullJob brings one image onto many nodes before Pods need it there.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of nodes that are to have the image."
// +kubebuilder:printcolumn:name="ACTIVE",type="integer",JSONPath=".status.active",description="The number of nodes that are pulling it."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of nodes that have it."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of nodes that have given up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the ImagePullJob was created."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message",description="How far the job has come."
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.completionTime) || !has(oldSelf.spec) || has(self.spec) && self.spec == oldSelf.spec",message="may not be changed: the job has completed; create a new one to pull again",fieldPath=".spec",reason="FieldValueForbidden"
type ImagePullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec ImagePullJobSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status ImagePullJobStatus `json:"status,omitempty"`
}

// ImagePullJobList is a list of ImagePullJobs.
//
// +kubebuilder:object:root=true
type ImagePullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ImagePullJob `json:"items"`
}

// ImagePullJobSpec is the wanted state of an ImagePullJob.
//
// +kubebuilder:validation:XValidation:rule="has(self.pullSecrets) == has(oldSelf.pullSecrets) && (!has(self.pullSecrets) || self.pullSecrets == oldSelf.pullSecrets)",message="spec.pullSecrets is immutable",fieldPath=".pullSecrets",reason="FieldValueForbidden"
type ImagePullJobSpec struct {
	// image is the image to pull, as a Pod would name it: nginx, quay.io/a/b:1.2, or one with a digest. Without a tag and a digest it is
	// the tag latest; with both the digest counts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	ImagePullJobTemplate `json:",inline"`
}

// ImagePullJobTemplate says on which nodes to pull, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.podSelector)",message="can not set both selector and podSelector",fieldPath=".podSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.completionPolicy) || !has(self.completionPolicy.activeDeadlineSeconds) || self.completionPolicy.activeDeadlineSeconds >= (has(self.pullPolicy) && has(self.pullPolicy.timeoutSeconds) ? self.pullPolicy.timeoutSeconds : 600)",message="completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(default 600)",fieldPath=".completionPolicy.activeDeadlineSeconds"
type ImagePullJobTemplate struct {
	// pullSecrets are the names of Secrets in the job's namespace with credentials for the registry. One that does not exist is left out
	// until it is created. They can't be changed. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// selector selects nodes, by their names or by their labels. It excludes podSelector. Without both, and when empty, all nodes are
	// selected.
	// +optional
	Selector *ImagePullJobNodeSelector `json:"selector,omitempty"`
	// podSelector selects the nodes that run Pods with these labels in the job's namespace.
	// +optional
	PodSelector *ImagePullJobPodSelector `json:"podSelector,omitempty"`
	// parallelism is the most nodes that pull at the same time: a number, which may be written as a string. 0 pauses the job; a lower value
	// stops no pull that is under way. Nodes that are not Ready do not count. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="type(self) == int || !self.endsWith('%')",message="parallelism does not support percentage value"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.endsWith('%') || self.matches('^[0-9]{1,9}$')",message="parallelism must be non-negative"
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`
	// pullPolicy sets the limits of the pull on one node.
	// +optional
	// +kubebuilder:default={}
	PullPolicy *PullPolicy `json:"pullPolicy,omitempty"`
	// completionPolicy says when the job is over.
	// +optional
	// +kubebuilder:default={}
	CompletionPolicy CompletionPolicy `json:"completionPolicy,omitempty"`
	// sandboxConfig holds labels and annotations that the container runtime is given with the pull, for its plugins. Defaults to none.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
	// imagePullPolicy says what to do on a node that has the image: Always asks the registry whether the tag has moved, IfNotPresent leaves
	// it be. Defaults to IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImagePullPolicy says what to do on a node that has the image.
// +kubebuilder:validation:Enum=Always;IfNotPresent
type ImagePullPolicy string

const (
	// PullAlways asks the registry even when the node has the image.
	PullAlways ImagePullPolicy = "Always"
	// PullIfNotPresent does nothing when the node has the image.
	PullIfNotPresent ImagePullPolicy = "IfNotPresent"
)

// ImagePullJobNodeSelector selects nodes by name or by label.
//
// +kubebuilder:validation:XValidation:rule="!has(self.names) || size(self.names) == 0 || (!has(self.matchLabels) || size(self.matchLabels) == 0) && (!has(self.matchExpressions) || size(self.matchExpressions) == 0)",message="can not set both names and labelSelector in this spec.selector",fieldPath=".names"
type ImagePullJobNodeSelector struct {
	// names are the nodes themselves, each once. It excludes matchLabels and matchExpressions. A node that does not exist is waited for.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	metav1.LabelSelector `json:",inline"`
}

// ImagePullJobPodSelector selects Pods by label.
type ImagePullJobPodSelector struct {
	metav1.LabelSelector `json:",inline"`
}

// PullPolicy sets the limits of the pull on one node.
type PullPolicy struct {
	// timeoutSeconds is how long one attempt may take, in seconds. Defaults to 600. Nodes use at most 7200.
	// +optional
	// +kubebuilder:default=600
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// backoffLimit is how often a node tries again after a failed attempt; a negative number counts as 3. Defaults to 3. Nodes
	// use at most 10.
	// +optional
	// +kubebuilder:default=3
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// CompletionPolicy says when a job is over.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Never' || !has(self.activeDeadlineSeconds) && !has(self.ttlSecondsAfterFinished)",message="activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always CompletionPolicyType"
type CompletionPolicy struct {
	// type is Always, which ends the job once each node has pulled or given up, or Never, which also pulls on nodes that come later and has
	// each node check about once a day. Defaults to Always.
	// +optional
	// +kubebuilder:default=Always
	Type CompletionPolicyType `json:"type,omitempty"`
	// activeDeadlineSeconds is how long the job may run, in seconds from its start; nodes that have not pulled by then have failed. It must
	// not be less than pullPolicy.timeoutSeconds. Defaults to no limit.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// ttlSecondsAfterFinished is how long after its completion the job is deleted, in seconds. Defaults to never.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// CompletionPolicyType says whether a job ends.
// +kubebuilder:validation:Enum=Always;Never
type CompletionPolicyType string

const (
	// AlwaysComplete ends the job once each node has pulled or given up.
	AlwaysComplete CompletionPolicyType = "Always"
	// NeverComplete repeats the pulls about once a day, also on nodes that come later.
	NeverComplete CompletionPolicyType = "Never"
)

// SandboxConfig is what the container runtime is told about the Pod that the image is for.
type SandboxConfig struct {
	// labels are those of the Pod sandbox.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are those of the Pod sandbox.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ImagePullJobStatus is what was last seen of an ImagePullJob.
type ImagePullJobStatus struct {
	// startTime is when the job was first looked after.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the job was over; absent while it runs.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// desired is the number of nodes that are to have the image.
	// +optional
	Desired int32 `json:"desired"`
	// active is the number of nodes that are pulling.
	// +optional
	Active int32 `json:"active,omitempty"`
	// succeeded is the number of nodes that have the image.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// failed is the number of nodes that have given up.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// message says how far the job has come.
	// +optional
	Message string `json:"message,omitempty"`
	// failedNodes are the nodes that have given up, by name.
	// +optional
	FailedNodes []string `json:"failedNodes,omitempty"`
}
