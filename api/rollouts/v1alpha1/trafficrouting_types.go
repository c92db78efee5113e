package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TrafficRouting leads some requests to the new versions of several workloads, whose Rollouts name it: it is in force while any of them has
// a release.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.phase",description="The phase of the TrafficRouting."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message",description="What happens, and what it waits for."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the TrafficRouting was created."
type TrafficRouting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	Spec TrafficRoutingSpec `json:"spec"`
	// status is what was last seen.
	// +optional
	Status TrafficRoutingStatus `json:"status,omitempty"`
}

// TrafficRoutingList is a list of TrafficRoutings.
//
// +kubebuilder:object:root=true
type TrafficRoutingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrafficRouting `json:"items"`
}

// TrafficRoutingSpec says which requests go to the new versions, and what leads them there.
type TrafficRoutingSpec struct {
	// objectRef are the Services, each once, and what leads traffic to them. They are driven together.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	ObjectRef []v1beta1.TrafficRoutingRef `json:"objectRef"`
	// strategy says which requests go to the new versions.
	Strategy TrafficRoutingStrategy `json:"strategy"`
}

// TrafficRoutingStrategy says which requests go to the new versions.
//
// +kubebuilder:validation:XValidation:rule="has(self.weight) != (has(self.matches) && size(self.matches) > 0)",message="exactly one of weight and matches is needed"
type TrafficRoutingStrategy struct {
	TrafficStrategy `json:",inline"`
}

// TrafficRoutingPhase is what a TrafficRouting is doing.
type TrafficRoutingPhase string

const (
	// TrafficRoutingPhaseInitial is the phase of a TrafficRouting that has not seen its objects.
	TrafficRoutingPhaseInitial TrafficRoutingPhase = "Initial"
	// TrafficRoutingPhaseHealthy is the phase of a TrafficRouting that no Rollout uses.
	TrafficRoutingPhaseHealthy TrafficRoutingPhase = "Healthy"
	// TrafficRoutingPhaseProgressing is the phase of a TrafficRouting that is in force.
	TrafficRoutingPhaseProgressing TrafficRoutingPhase = "Progressing"
	// TrafficRoutingPhaseFinalizing is the phase of a TrafficRouting that restores its routes.
	TrafficRoutingPhaseFinalizing TrafficRoutingPhase = "Finalizing"
	// TrafficRoutingPhaseTerminating is the phase of a TrafficRouting that is being deleted.
	TrafficRoutingPhaseTerminating TrafficRoutingPhase = "Terminating"
)

// TrafficRoutingStatus is what was last seen.
type TrafficRoutingStatus struct {
	// observedGeneration is the generation that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Initial, Healthy, Progressing, Finalizing or Terminating.
	// +optional
	Phase TrafficRoutingPhase `json:"phase,omitempty"`
	// message says in a sentence what happens and what it waits for.
	// +optional
	Message string `json:"message,omitempty"`
}
