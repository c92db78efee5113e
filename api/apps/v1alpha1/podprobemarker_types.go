package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodProbeMarker asks containers of Pods questions of the user's own, again and again, and puts the answers on the Pods: as a condition, and as
// labels and annotations.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="MATCHED",type="integer",JSONPath=".status.matchedPods",description="The number of Pods that are probed."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the PodProbeMarker was created."
type PodProbeMarker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked, and of which Pods.
	// +optional
	Spec PodProbeMarkerSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status PodProbeMarkerStatus `json:"status,omitempty"`
}

// PodProbeMarkerList is a list of PodProbeMarkers.
//
// +kubebuilder:object:root=true
type PodProbeMarkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodProbeMarker `json:"items"`
}

// PodProbeMarkerSpec is what is asked, and of which Pods.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="is immutable: make another PodProbeMarker to probe other Pods",fieldPath=".selector"
type PodProbeMarkerSpec struct {
	// selector selects the Pods, of the same namespace, by label. It must not be empty, and can't be changed.
	Selector *metav1.LabelSelector `json:"selector"`
	// probes are the questions. There is at least one; their names are unique.
	// +listType=atomic
	Probes []PodContainerProbe `json:"probes"`
}

// PodContainerProbe is one question to one container.
type PodContainerProbe struct {
	// name is the name of the probe. It must not contain a #, nor be the name of a condition of Kubernetes or Kruise.
	Name string `json:"name"`
	// containerName is the container that is asked. Pods without it are not.
	ContainerName string `json:"containerName"`
	// probe is how it is asked and how often.
	Probe ContainerProbeSpec `json:"probe"`
	// markerPolicy says which labels and annotations a Pod gets for which answer. The keys that it had for the other answer are taken off. An
	// answer that is unknown changes nothing.
	// +optional
	// +listType=atomic
	MarkerPolicy []ProbeMarkerPolicy `json:"markerPolicy,omitempty"`
	// podConditionType is the type of the Pod condition that shows the answer: True for success, else False, with the probe's output as its
	// message. Required when there is no markerPolicy.
	// +optional
	PodConditionType string `json:"podConditionType,omitempty"`
}

// ContainerProbeSpec is a probe of core/v1. Of exec, httpGet and tcpSocket exactly one is given; initialDelaySeconds, timeoutSeconds,
// periodSeconds, successThreshold and failureThreshold default to 1. The host is always the Pod.
type ContainerProbeSpec struct {
	corev1.Probe `json:",inline"`
}

// ProbeMarkerPolicy is what a Pod gets for one answer.
type ProbeMarkerPolicy struct {
	// state is the answer: Succeeded or Failed. Each can be named once.
	State ProbeState `json:"state"`
	// labels are put on the Pod.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are put on the Pod.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodProbeMarkerStatus is what was last seen of a PodProbeMarker.
type PodProbeMarkerStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`
	// matchedPods is the number of Pods that are probed: active, on a node, initialized, and selected.
	// +optional
	MatchedPods int64 `json:"matchedPods,omitempty"`
}
