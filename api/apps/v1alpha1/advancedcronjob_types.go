package v1alpha1

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// AdvancedCronJob makes a job at each time of a schedule: a Job of Kubernetes, or a BroadcastJob.
//
// An ImageListPullJob, which only v1beta1 has a field for, is kept in the annotation apps.kruise.io/image-list-pull-job-template, so that an
// object that is read and written in this version loses nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=acj
// +kubebuilder:printcolumn:name="Schedule",type="string",JSONPath=".spec.schedule",description="When jobs are made."
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".status.type",description="What kind of jobs are made."
// +kubebuilder:printcolumn:name="LastScheduleTime",type="date",JSONPath=".status.lastScheduleTime",description="The time since the slot of the newest job."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the AdvancedCronJob was created."
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
	// schedule is when jobs are made: the five fields of cron (minute, hour, day of month, month, day of week), or one of @hourly, @daily,
	// @midnight, @weekly, @monthly, @yearly, @annually and "@every 90m". "TZ=Asia/Tokyo " or "CRON_TZ=Asia/Tokyo " in front names a time zone.
	// A new schedule holds at once, from the last slot that was used: slots of the new schedule since then count as missed.
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
	// concurrencyPolicy says what to do at a slot while an earlier job is under way: Allow starts another one, Forbid waits for the end of the
	// earlier one and then starts the latest slot that was missed, Replace deletes the earlier one. Defaults to Allow, or with
	// imageListPullJobTemplate to Replace; Allow is not possible with that.
	// +optional
	ConcurrencyPolicy v1beta1.ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// paused stops the making of jobs; those that are there run on. Once it ends, the latest slot that was missed is made up for. Defaults to
	// false.
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
	// template is what jobs are made of. Exactly one of its fields is set.
	Template CronJobTemplate `json:"template"`
}

// CronJobTemplate is what jobs are made of. Exactly one of its fields is set.
type CronJobTemplate struct {
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
	BroadcastJobTemplate *v1beta1.BroadcastJobTemplateSpec `json:"broadcastJobTemplate,omitempty"`
}
