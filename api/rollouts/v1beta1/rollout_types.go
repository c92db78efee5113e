package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout turns every change of the Pod template of a workload into a release in steps: so many updated Pods, so much traffic, a pause or
// an approval, the next step. The workload stays what users, autoscalers and GitOps tools write.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.phase",description="The phase of the Rollout."
// +kubebuilder:printcolumn:name="CANARY_STEP",type="integer",JSONPath=".status.currentStepIndex",description="The step that the release is at, counted from 1."
// +kubebuilder:printcolumn:name="CANARY_STATE",type="string",JSONPath=".status.currentStepState",description="What the step is doing."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message",description="What happens, and what it waits for."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the Rollout was created."
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.?phase.orValue(\"\") in ['Progressing', 'Terminating']) || self.spec.workloadRef == oldSelf.spec.workloadRef",message="can't be changed during a release: wait for its end, or roll back first",fieldPath=".spec.workloadRef",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.?phase.orValue(\"\") in ['Progressing', 'Terminating']) || has(self.spec.strategy.canary) == has(oldSelf.spec.strategy.canary) && self.spec.strategy.?canary.?enableExtraWorkloadForCanary.orValue(false) == oldSelf.spec.strategy.?canary.?enableExtraWorkloadForCanary.orValue(false)",message="the style of the release can't be changed during it: wait for its end, or roll back first",fieldPath=".spec.strategy",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.?phase.orValue(\"\") in ['Progressing', 'Terminating']) || (!has(self.spec.strategy.canary) || !has(oldSelf.spec.strategy.canary) || has(self.spec.strategy.canary.trafficRoutings) == has(oldSelf.spec.strategy.canary.trafficRoutings) && (!has(self.spec.strategy.canary.trafficRoutings) || self.spec.strategy.canary.trafficRoutings == oldSelf.spec.strategy.canary.trafficRoutings)) && (!has(self.spec.strategy.blueGreen) || !has(oldSelf.spec.strategy.blueGreen) || has(self.spec.strategy.blueGreen.trafficRoutings) == has(oldSelf.spec.strategy.blueGreen.trafficRoutings) && (!has(self.spec.strategy.blueGreen.trafficRoutings) || self.spec.strategy.blueGreen.trafficRoutings == oldSelf.spec.strategy.blueGreen.trafficRoutings))",message="trafficRoutings can't be changed during a release: wait for its end, or roll back first",fieldPath=".spec.strategy",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.?phase.orValue(\"\") in ['Progressing', 'Terminating']) || self.spec.strategy.?canary.?steps.orValue([]).size() == oldSelf.spec.strategy.?canary.?steps.orValue([]).size() && self.spec.strategy.?blueGreen.?steps.orValue([]).size() == oldSelf.spec.strategy.?blueGreen.?steps.orValue([]).size()",message="the number of steps can't be changed during a release: change what the steps say, or roll back first",fieldPath=".spec.strategy",reason="FieldValueForbidden"
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	Spec RolloutSpec `json:"spec"`
	// status is what was last seen, and where the release is.
	// +optional
	Status RolloutStatus `json:"status,omitempty"`
}

// RolloutList is a list of Rollouts.
//
// +kubebuilder:object:root=true
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rollout `json:"items"`
}

// RolloutSpec says which workload is released, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.strategy.blueGreen) || self.workloadRef.apiVersion.startsWith('apps/') && self.workloadRef.kind == 'Deployment' || self.workloadRef.apiVersion.startsWith('apps.kruise.io/') && self.workloadRef.kind == 'CloneSet'",message="can be used with a Deployment or a CloneSet only: use canary",fieldPath=".strategy.blueGreen"
// +kubebuilder:validation:XValidation:rule="!self.strategy.?canary.?enableExtraWorkloadForCanary.orValue(false) || self.workloadRef.apiVersion.startsWith('apps/') && self.workloadRef.kind == 'Deployment'",message="can be true with a Deployment only: leave it out, and the Pods of the workload itself are updated in batches",fieldPath=".strategy.canary.enableExtraWorkloadForCanary"
type RolloutSpec struct {
	// workloadRef is the workload, in the namespace of the Rollout. It can't be changed during a release.
	WorkloadRef WorkloadReference `json:"workloadRef"`
	// strategy says in which steps a release goes. Exactly one of its canary and blueGreen is set.
	Strategy RolloutStrategy `json:"strategy"`
	// disabled stops the Rollout from managing its workload; a release that is under way is ended first, and the new version is rolled out
	// by the workload itself. Defaults to false.
	// +optional
	// +kubebuilder:default=false
	Disabled bool `json:"disabled"`
}

// WorkloadReference names a workload.
type WorkloadReference struct {
	// apiVersion is the group and version of the workload, such as apps/v1. Rollouts compare only the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!self.matches('/.*/')",message="must be a group and a version, such as apps/v1"
	APIVersion string `json:"apiVersion"`
	// kind is the kind of the workload, such as Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name is the name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RolloutStrategy says in which steps a release goes.
//
// +kubebuilder:validation:XValidation:rule="has(self.canary) != has(self.blueGreen)",message="exactly one of canary and blueGreen is needed"
type RolloutStrategy struct {
	// paused holds the release where it is: no further step, no change of traffic, no further Pod. A rollback, disabling and deletion go
	// on. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// canary updates the Pods of the workload in batches (partition style), or those of a second Deployment first (canary style).
	// +optional
	Canary *CanaryStrategy `json:"canary,omitempty"`
	// blueGreen brings all new Pods up beside the old ones, and moves only traffic until the end.
	// +optional
	BlueGreen *BlueGreenStrategy `json:"blueGreen,omitempty"`
	// progressDeadlineSeconds is how long the Pods of one step may take to be ready before condition Progressing becomes False with reason
	// StepTimeout, which names Pods and why they are not ready. The release goes on when they are. Defaults to no deadline.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// onProgressDeadline is what follows when the Pods of a step take longer than progressDeadlineSeconds: Wait, or Rollback, which puts
	// the old template back. Defaults to Wait.
	// +optional
	OnProgressDeadline DeadlineAction `json:"onProgressDeadline,omitempty"`
	// guard watches the Pods of every release, without any metrics. Defaults to a guard that pauses a bad release; to have none say
	// onFailure None.
	// +optional
	Guard *Guard `json:"guard,omitempty"`
}

// CanaryStrategy updates some Pods of the workload, or of a second Deployment, at each step.
//
// +kubebuilder:validation:XValidation:rule="self.steps.all(s, !has(s.traffic) || s.traffic != '0%')",message="traffic must be at least 1%: leave it out in a step without traffic for the new version",fieldPath=".steps"
// +kubebuilder:validation:XValidation:rule="!has(self.patchPodTemplateMetadata) || self.?enableExtraWorkloadForCanary.orValue(false)",message="has an effect only on a second Deployment: set enableExtraWorkloadForCanary, or leave it out",fieldPath=".patchPodTemplateMetadata",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!self.?enableExtraWorkloadForCanary.orValue(false) || self.steps.all(s, !has(s.podMetadata))",message="podMetadata is for the Pods of the workload itself: use patchPodTemplateMetadata for those of a second Deployment",fieldPath=".steps"
// +kubebuilder:validation:XValidation:rule="self.?trafficRoutingRef.orValue(\"\") == \"\" || self.?trafficRoutings.orValue([]).size() == 0",message="can't be used beside trafficRoutings",fieldPath=".trafficRoutingRef",reason="FieldValueForbidden"
type CanaryStrategy struct {
	StepsStrategy `json:",inline"`

	// enableExtraWorkloadForCanary has new Pods run in a second Deployment until the end (canary style), while the workload keeps all of
	// its Pods. For a Deployment of Kubernetes only. Defaults to false, which updates the Pods of the workload itself (partition style).
	// +optional
	EnableExtraWorkloadForCanary bool `json:"enableExtraWorkloadForCanary,omitempty"`
	// patchPodTemplateMetadata is added to the Pod template of the second Deployment.
	// +optional
	PatchPodTemplateMetadata *PatchPodTemplateMetadata `json:"patchPodTemplateMetadata,omitempty"`
}

// BlueGreenStrategy brings new Pods up beside the old ones.
//
// +kubebuilder:validation:XValidation:rule="self.steps.all(s, !has(s.podMetadata))",message="podMetadata is for releases that update the Pods of the workload batch by batch: use a canary strategy, or leave it out",fieldPath=".steps"
// +kubebuilder:validation:XValidation:rule="self.?trafficRoutingRef.orValue(\"\") == \"\" || self.?trafficRoutings.orValue([]).size() == 0",message="can't be used beside trafficRoutings",fieldPath=".trafficRoutingRef",reason="FieldValueForbidden"
type BlueGreenStrategy struct {
	StepsStrategy `json:",inline"`
}

// StepsStrategy is what all styles of a release say.
type StepsStrategy struct {
	// steps are what a release does, one after the other. What they say can be changed during a release, their number can't.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Steps []Step `json:"steps"`
	// trafficRoutings are the Services of the workload, each once, and what leads traffic to them. They are driven together. A step without
	// traffic and matches needs none. They can't be changed during a release.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	TrafficRoutings []TrafficRoutingRef `json:"trafficRoutings,omitempty"`
	// failureThreshold is how many updated Pods may be not ready while the batch counts as ready: a number, or a percentage of the updated
	// Pods, rounded up. At least one Pod must be ready. Defaults to 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be 0 or more, or a percentage"
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	FailureThreshold *intstr.IntOrString `json:"failureThreshold,omitempty"`
	// trafficRoutingRef is the name of a TrafficRouting in the same namespace, which several Rollouts may share. It can't be used beside
	// trafficRoutings. The annotation rollouts.kruise.io/trafficrouting says the same; the field wins.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TrafficRoutingRef string `json:"trafficRoutingRef,omitempty"`
	// disableGenerateCanaryService leaves the Service as it is, and creates none for the new version: for Istio, which tells Pods apart by
	// subsets. It has no effect on Ingresses and Gateway API routes, which need both Services. Defaults to false.
	// +optional
	DisableGenerateCanaryService bool `json:"disableGenerateCanaryService,omitempty"`
}

// PatchPodTemplateMetadata is what is added to the metadata of a Pod template.
type PatchPodTemplateMetadata struct {
	// labels are added, or replace those of the same keys.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are added, or replace those of the same keys.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
