package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// BroadcastJob runs one Pod to completion on every node that fits its template. Its fields are those of v1beta1.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bcj
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
	Spec v1beta1.BroadcastJobSpec `json:"spec,omitempty"`
	// status is what was last seen; it stays as it is once the job has finished.
	// +optional
	Status v1beta1.BroadcastJobStatus `json:"status,omitempty"`
}

// BroadcastJobList is a list of BroadcastJobs.
//
// +kubebuilder:object:root=true
type BroadcastJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BroadcastJob `json:"items"`
}

// AdvancedCronJob makes a job at each time of a schedule: a Job of Kubernetes, or a BroadcastJob.
//
// An ImageListPullJob, which only v1beta1 has a field for, is kept in the annotation apps.kruise.io/image-list-pull-job-template, so that
// an object that is read and written in this version loses nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=acj
// +kubebuilder:printcolumn:name="Schedule",type="string",JSONPath=".spec.schedule",description="When jobs are made."
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".status.type",description="What kind of jobs are made."
// +kubebuilder:printcolumn:name="LastScheduleTime",type="date",JSONPath=".status.lastScheduleTime",description="The time since the slot of the newest job."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the AdvancedCronJob was created."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 52 && !self.metadata.name.contains('.')",optionalOldSelf=true,message="metadata.name must be no more than 52 characters, without a dot: the names of its jobs are made of it, a dash and ten digits"
type AdvancedCronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec AdvancedCronJobSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status v1beta1.AdvancedCronJobStatus `json:"status,omitempty"`
}

// AdvancedCronJobList is a list of AdvancedCronJobs.
//
// +kubebuilder:object:root=true
type AdvancedCronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AdvancedCronJob `json:"items"`
}

// AdvancedCronJobSpec says when jobs are made, and of what.
type AdvancedCronJobSpec struct {
	v1beta1.AdvancedCronJobBaseSpec `json:",inline"`

	// template is what jobs are made of. Exactly one of its fields is set.
	Template v1beta1.CronJobBaseTemplate `json:"template"`
}
