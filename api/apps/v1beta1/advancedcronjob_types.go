package v1beta1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdvancedCronJob makes a job at each time of a schedule: a Job of Kubernetes, a BroadcastJob, or an ImageListPullJob.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=acj
// +kubebuilder:storageversion
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
	Status AdvancedCronJobStatus `json:"status,omitempty"`
}

// AdvancedCronJobList is a list of AdvancedCronJobs.
//
// +kubebuilder:object:root=true
type AdvancedCronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AdvancedCronJob `json:"items"`
}

// AdvancedCronJobBaseSpec says when jobs are made.
type AdvancedCronJobBaseSpec struct {
	// schedule is when jobs are made: the five fields of cron (minute, hour, day of month, month, day of week), or one of @hourly, @daily,
	// @midnight, @weekly, @monthly, @yearly, @annually and "@every 90m". "TZ=Asia/Tokyo " or "CRON_TZ=Asia/Tokyo " in front names a time
	// zone. The least after @every is five seconds. A new schedule holds at once, from the last slot that was used: slots of the new
	// schedule since then count as missed.
	// +kubebuilder:validation:MinLength=1
	Schedule string `json:"schedule"`
	// timeZone is the IANA name of the time zone of the schedule, such as Asia/Tokyo. It can't be given together with one in the schedule.
	// Defaults to the time zone of the manager, which is UTC in the image that is shipped.
	// +optional
	// +kubebuilder:validation:MinLength=1
	TimeZone *string `json:"timeZone,omitempty"`
	// startingDeadlineSeconds is how long after its slot a job may still be started, in seconds; later the slot is left out. Defaults to no
	// limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// concurrencyPolicy says what to do at a slot while an earlier job is under way: Allow starts another one, Forbid waits for the end of
	// the earlier one and then starts the latest slot that was missed, Replace deletes the earlier one. Defaults to Allow, or with
	// imageListPullJobTemplate to Replace; Allow is not possible with that.
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// paused stops the making of jobs; those that are there run on. Once it ends, the latest slot that was missed is made up for. Defaults
	// to false.
	// +optional
	Paused *bool `json:"paused,omitempty"`
	// successfulJobsHistoryLimit is how many jobs that ended well are kept. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// failedJobsHistoryLimit is how many jobs that failed are kept. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// AdvancedCronJobSpec says when jobs are made, and of what.
//
// +kubebuilder:validation:XValidation:rule="!has(self.template.imageListPullJobTemplate) || !has(self.concurrencyPolicy) || self.concurrencyPolicy != 'Allow'",message="must be Forbid or Replace: a list of images is not pulled twice at the same time",fieldPath=".concurrencyPolicy"
type AdvancedCronJobSpec struct {
	AdvancedCronJobBaseSpec `json:",inline"`

	// template is what jobs are made of. Exactly one of its fields is set.
	Template CronJobTemplate `json:"template"`
}

// CronJobBaseTemplate is what jobs that run Pods are made of.
type CronJobBaseTemplate struct {
	// jobTemplate makes Jobs of Kubernetes. It can't be changed.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	JobTemplate *batchv1.JobTemplateSpec `json:"jobTemplate,omitempty"`
	// broadcastJobTemplate makes BroadcastJobs. It can't be changed. Jobs that can't block those after them for ever have the completion
	// policy Always and a deadline.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	BroadcastJobTemplate *BroadcastJobTemplateSpec `json:"broadcastJobTemplate,omitempty"`
}

// CronJobTemplate is what jobs are made of. Exactly one of its fields is set.
type CronJobTemplate struct {
	CronJobBaseTemplate `json:",inline"`

	// imageListPullJobTemplate makes ImageListPullJobs. Its completion policy must be Always without ttlSecondsAfterFinished: the history
	// limits decide how long jobs are kept. It can be changed, for the jobs to come.
	// +optional
	ImageListPullJobTemplate *ImageListPullJobTemplateSpec `json:"imageListPullJobTemplate,omitempty"`
}

// BroadcastJobTemplateSpec is what a BroadcastJob is made of.
type BroadcastJobTemplateSpec struct {
	// metadata holds the labels and annotations of the jobs.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is that of the jobs.
	// +optional
	Spec BroadcastJobSpec `json:"spec,omitempty"`
}

// ImageListPullJobTemplateSpec is what an ImageListPullJob is made of.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spec.completionPolicy) || !has(self.spec.completionPolicy.type) || self.spec.completionPolicy.type == 'Always'",message="must be Always: a job that never ends is no job of a schedule",fieldPath=".spec.completionPolicy.type"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.completionPolicy) || !has(self.spec.completionPolicy.ttlSecondsAfterFinished)",message="may not be set: the history limits decide how long jobs are kept",fieldPath=".spec.completionPolicy.ttlSecondsAfterFinished"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.completionPolicy) || !has(self.spec.completionPolicy.activeDeadlineSeconds) || self.spec.completionPolicy.activeDeadlineSeconds <= 86400",message="must be no more than 86400, a day",fieldPath=".spec.completionPolicy.activeDeadlineSeconds"
type ImageListPullJobTemplateSpec struct {
	// metadata holds the labels and annotations of the jobs.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is that of the jobs.
	Spec ImageListPullJobSpec `json:"spec"`
}

// ConcurrencyPolicy says what to do at a slot while an earlier job is under way.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent starts another job beside the earlier one.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent waits for the end of the earlier job.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the earlier job.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// TemplateKind is the kind of the jobs that an AdvancedCronJob makes.
type TemplateKind string

const (
	// JobTemplate stands for Jobs of Kubernetes.
	JobTemplate TemplateKind = "Job"
	// BroadcastJobTemplate stands for BroadcastJobs.
	BroadcastJobTemplate TemplateKind = "BroadcastJob"
	// ImageListPullJobTemplate stands for ImageListPullJobs.
	ImageListPullJobTemplate TemplateKind = "ImageListPullJob"
)

// AdvancedCronJobStatus is what was last seen of an AdvancedCronJob.
type AdvancedCronJobStatus struct {
	// type is the kind of the jobs: Job, BroadcastJob or ImageListPullJob.
	// +optional
	Type TemplateKind `json:"type,omitempty"`
	// active are the jobs under way.
	// +optional
	// +listType=atomic
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// lastScheduleTime is the latest slot that a job was made for; it never goes back.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}
