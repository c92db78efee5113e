package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePodProbe holds the probes that the daemon of the node of the same name runs, and their results. Users read it; the manager writes its
// spec, the daemon its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the NodePodProbe was created."
type NodePodProbe struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked on the node.
	// +optional
	Spec NodePodProbeSpec `json:"spec,omitempty"`
	// status is what was answered.
	// +optional
	Status NodePodProbeStatus `json:"status,omitempty"`
}

// NodePodProbeList is a list of NodePodProbes.
//
// +kubebuilder:object:root=true
type NodePodProbeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePodProbe `json:"items"`
}

// NodePodProbeSpec is what is asked on a node.
type NodePodProbeSpec struct {
	// podProbes are the probes of each Pod.
	// +optional
	// +listType=atomic
	PodProbes []PodProbe `json:"podProbes,omitempty"`
}

// PodProbe is the probes of one Pod.
type PodProbe struct {
	// name is the name of the Pod.
	Name string `json:"name"`
	// namespace is the namespace of the Pod.
	Namespace string `json:"namespace"`
	// uid is the UID of the Pod.
	UID string `json:"uid"`
	// IP is the address of the Pod, at which it is asked over HTTP and TCP.
	// +optional
	IP string `json:"IP"`
	// probes are the questions to the Pod's containers.
	// +optional
	// +listType=atomic
	Probes []ContainerProbe `json:"probes,omitempty"`
}

// ContainerProbe is one question to one container.
type ContainerProbe struct {
	// name is the name of the PodProbeMarker and that of its probe, joined by a #.
	Name string `json:"name"`
	// containerName is the container that is asked.
	ContainerName string `json:"containerName"`
	// probe is how it is asked and how often. Its ports are numbers.
	Probe ContainerProbeSpec `json:"probe"`
}

// ProbeState is the answer of a probe.
type ProbeState string

const (
	// ProbeSucceeded means that the answer is yes.
	ProbeSucceeded ProbeState = "Succeeded"
	// ProbeFailed means that the answer is no.
	ProbeFailed ProbeState = "Failed"
	// ProbeUnknown means that there is no answer yet.
	ProbeUnknown ProbeState = "Unknown"
)

// NodePodProbeStatus is what was answered on a node.
type NodePodProbeStatus struct {
	// podProbeStatuses are the answers of each Pod.
	// +optional
	// +listType=atomic
	PodProbeStatuses []PodProbeStatus `json:"podProbeStatuses,omitempty"`
}

// PodProbeStatus is the answers of one Pod.
type PodProbeStatus struct {
	// name is the name of the Pod.
	Name string `json:"name"`
	// namespace is the namespace of the Pod.
	Namespace string `json:"namespace"`
	// uid is the UID of the Pod.
	UID string `json:"uid"`
	// probeStates are the answers of the Pod's containers.
	// +optional
	// +listType=atomic
	ProbeStates []ContainerProbeState `json:"probeStates,omitempty"`
}

// ContainerProbeState is the answer to one question.
type ContainerProbeState struct {
	// name is that of the probe in spec.
	Name string `json:"name"`
	// state is Succeeded, Failed or Unknown.
	State ProbeState `json:"state"`
	// lastProbeTime is when the answer was given.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// lastTransitionTime is when the state became what it is.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// message is what the probe printed: on success from its standard output or the HTTP body, on failure from its standard error.
	// +optional
	Message string `json:"message,omitempty"`
}
