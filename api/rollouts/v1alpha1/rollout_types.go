package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Rollout turns every change of the Pod template of a workload into a release in steps: so many updated Pods, so much traffic, a pause or
// an approval, the next step. The annotation rollouts.kruise.io/rolling-style says the style: partition updates the Pods of the workload
// itself, anything else those of a second Deployment first. A Rollout of blueGreen style is shown with the style bluegreen, and can be
// changed in v1beta1 only.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.phase",description="The phase of the Rollout."
// +kubebuilder:printcolumn:name="CANARY_STEP",type="integer",JSONPath=".status.canaryStatus.currentStepIndex",description="The step that the release is at, counted from 1."
// +kubebuilder:printcolumn:name="CANARY_STATE",type="string",JSONPath=".status.canaryStatus.currentStepState",description="What the step is doing."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message",description="What happens, and what it waits for."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the Rollout was created."
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.?phase.orValue(\"\") in ['Progressing', 'Terminating']) || self.spec.objectRef == oldSelf.spec.objectRef",message="can't be changed during a release: wait for its end, or roll back first",fieldPath=".spec.objectRef",reason="FieldValueForbidden"
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
// +kubebuilder:validation:XValidation:rule="has(self.objectRef.workloadRef)",message="is needed: name the workload",fieldPath=".objectRef",reason="FieldValueRequired"
// +kubebuilder:validation:XValidation:rule="has(self.strategy.canary)",message="needs canary",fieldPath=".strategy",reason="FieldValueRequired"
type RolloutSpec struct {
	// objectRef names the workload.
	ObjectRef WorkloadObjectRef `json:"objectRef"`
	// strategy says in which steps a release goes.
	Strategy RolloutStrategy `json:"strategy"`
	// rolloutID has no effect: label the workload with rollouts.kruise.io/rollout-id instead.
	// +optional
	DeprecatedRolloutID string `json:"rolloutID,omitempty"`
	// disabled stops the Rollout from managing its workload; a release that is under way is ended first. Defaults to false.
	// +optional
	// +kubebuilder:default=false
	Disabled bool `json:"disabled"`
}

// WorkloadObjectRef names a workload.
type WorkloadObjectRef struct {
	// workloadRef is the workload, in the namespace of the Rollout.
	// +optional
	WorkloadRef *v1beta1.WorkloadReference `json:"workloadRef,omitempty"`
}

// RolloutStrategy says in which steps a release goes.
type RolloutStrategy struct {
	// paused holds the release where it is. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// canary lists the steps.
	// +optional
	Canary *CanaryStrategy `json:"canary,omitempty"`
}

// CanaryStrategy says what a release does at each step.
type CanaryStrategy struct {
	// steps are what a release does, one after the other.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Steps []Step `json:"steps"`
	// trafficRoutings are the Services of the workload, each once, and what leads traffic to them. They are driven together.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	TrafficRoutings []v1beta1.TrafficRoutingRef `json:"trafficRoutings,omitempty"`
	// failureThreshold is how many updated Pods may be not ready while the batch counts as ready: a number, or a percentage of the updated
	// Pods, rounded up. Defaults to 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be 0 or more, or a percentage"
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	FailureThreshold *intstr.IntOrString `json:"failureThreshold,omitempty"`
	// patchPodTemplateMetadata is added to the Pod template of the second Deployment.
	// +optional
	PatchPodTemplateMetadata *v1beta1.PatchPodTemplateMetadata `json:"patchPodTemplateMetadata,omitempty"`
	// disableGenerateCanaryService leaves the Service as it is, and creates none for the new version. Defaults to false.
	// +optional
	DisableGenerateCanaryService bool `json:"disableGenerateCanaryService,omitempty"`
}

// TrafficStrategy says which requests go to the new version.
type TrafficStrategy struct {
	// weight is the share of requests that goes to the new version, in percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`
	// requestHeaderModifier changes the headers of requests on their way to the new version.
	// +optional
	RequestHeaderModifier *v1beta1.HTTPHeaderFilter `json:"requestHeaderModifier,omitempty"`
	// matches are the requests that go to the new version: those that at least one item matches.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	Matches []HTTPRouteMatch `json:"matches,omitempty"`
}

// HTTPRouteMatch matches requests that have all of its headers.
type HTTPRouteMatch struct {
	// headers are the headers that a request must have.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Headers []v1beta1.HTTPHeaderMatch `json:"headers,omitempty"`
}

// Step is one step of a release.
//
// +kubebuilder:validation:XValidation:rule="has(self.replicas) || has(self.weight)",message="needs replicas or weight"
type Step struct {
	TrafficStrategy `json:",inline"`

	// replicas is how many Pods run the new version at the end of the step, those of earlier steps included: a number, or a percentage of
	// the workload's replicas, rounded up. Defaults to weight, as a percentage.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`
	// pause is what the step waits for at its end. Defaults to an approval.
	// +optional
	Pause v1beta1.StepPause `json:"pause,omitempty"`
}

// RolloutStatus is what was last seen, and where the release is.
type RolloutStatus struct {
	// observedGeneration is the generation of the Rollout that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// canaryStatus is where the release is.
	// +optional
	CanaryStatus *v1beta1.CanaryStatus `json:"canaryStatus,omitempty"`
	// conditions are Progressing, Succeeded and Terminating, with reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []v1beta1.RolloutCondition `json:"conditions,omitempty"`
	// phase is Initial, Healthy, Progressing, Terminating, Disabling or Disabled.
	// +optional
	Phase v1beta1.RolloutPhase `json:"phase,omitempty"`
	// message says in a sentence what happens and what it waits for.
	// +optional
	Message string `json:"message,omitempty"`
}
