package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// RolloutHistory keeps what a release consisted of, and which Pods each of its steps updated.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase",description="Whether the release is over."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the release began."
type RolloutHistory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the release consisted of.
	// +optional
	Spec RolloutHistorySpec `json:"spec,omitempty"`
	// status is how the release went.
	// +optional
	Status RolloutHistoryStatus `json:"status,omitempty"`
}

// RolloutHistoryList is a list of RolloutHistories.
//
// +kubebuilder:object:root=true
type RolloutHistoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutHistory `json:"items"`
}

// RolloutHistorySpec is what a release consisted of.
type RolloutHistorySpec struct {
	// rollout is the Rollout.
	// +optional
	Rollout RolloutInfo `json:"rollout,omitempty"`
	// workload is the workload.
	// +optional
	Workload WorkloadInfo `json:"workload,omitempty"`
	// service is the Service.
	// +optional
	Service NamedData `json:"service,omitempty"`
	// trafficRouting is what leads traffic to the Service.
	// +optional
	TrafficRouting TrafficRoutingInfo `json:"trafficRouting,omitempty"`
}

// NamedData is the spec of an object.
type NamedData struct {
	// name is the name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// data is the spec of the object.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Data runtime.RawExtension `json:"data,omitempty"`
}

// RolloutInfo is a Rollout.
type RolloutInfo struct {
	NamedData `json:",inline"`

	// rolloutID names the release.
	// +optional
	RolloutID string `json:"rolloutID,omitempty"`
}

// WorkloadInfo is a workload.
type WorkloadInfo struct {
	v1beta1.WorkloadReference `json:",inline"`

	// data is the spec of the workload.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Data runtime.RawExtension `json:"data,omitempty"`
}

// TrafficRoutingInfo is what leads traffic to a Service.
type TrafficRoutingInfo struct {
	// ingress is the Ingress.
	// +optional
	Ingress *NamedData `json:"ingress,omitempty"`
	// httpRoute is the HTTPRoute.
	// +optional
	HTTPRoute *NamedData `json:"httpRoute,omitempty"`
}

// RolloutHistoryStatus is how a release went.
type RolloutHistoryStatus struct {
	// phase is empty, or completed once the release is over.
	// +optional
	Phase string `json:"phase,omitempty"`
	// canarySteps are the steps of the release.
	// +optional
	CanarySteps []CanaryStepInfo `json:"canarySteps,omitempty"`
}

// CanaryStepInfo is a step of a release.
type CanaryStepInfo struct {
	// canaryStepIndex is the step, counted from 1.
	// +optional
	CanaryStepIndex int32 `json:"canaryStepIndex,omitempty"`
	// pods are the Pods that the step updated.
	// +optional
	Pods []CanaryStepPodInfo `json:"pods,omitempty"`
}

// CanaryStepPodInfo is a Pod that a step updated.
type CanaryStepPodInfo struct {
	// name is the name of the Pod.
	// +optional
	Name string `json:"name,omitempty"`
	// ip is the IP address of the Pod.
	// +optional
	IP string `json:"ip,omitempty"`
	// nodeName is the node of the Pod.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
}
