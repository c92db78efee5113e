package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodProbeMarker asks containers of Pods questions of the user's own, again and again, and puts the answers on the Pods: as a condition,
// and as labels and annotations.
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
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="name the labels of the Pods: an empty selector would probe every Pod of the namespace",reason="FieldValueRequired"
	Selector *metav1.LabelSelector `json:"selector"`
	// probes are the questions. There are 1 to 64; their names are unique. A node runs as many
	// as fit into its NodePodProbe, more than 500 as a rule; if there are more, each namespace gets its share.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.name == p.name))",message="Duplicate value: give each probe a name of its own"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.podConditionType) || p.podConditionType == '' || self.exists_one(q, has(q.podConditionType) && q.podConditionType == p.podConditionType))",message="Duplicate value: give each probe a podConditionType of its own"
	Probes []PodContainerProbe `json:"probes"`
}

// PodContainerProbe is one question to one container.
//
// +kubebuilder:validation:XValidation:rule="has(self.podConditionType) && size(self.podConditionType) > 0 || has(self.markerPolicy) && size(self.markerPolicy) > 0",message="without it and without markerPolicy nothing would show the answer",fieldPath=".podConditionType",reason="FieldValueRequired"
type PodContainerProbe struct {
	// name is the name of the probe. It must not contain a #, nor be the name of a condition of Kubernetes or Kruise.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('#')",message="must not contain a #: it parts the names of marker and probe"
	// +kubebuilder:validation:XValidation:rule="!(self in ['PodScheduled', 'Initialized', 'Ready', 'ContainersReady', 'DisruptionTarget', 'PodReadyToStartContainers', 'PodResizePending', 'PodResizeInProgress', 'AllContainersRestarting', 'KruisePodReady', 'InPlaceUpdateReady', 'SidecarSetUpgradable', 'SidecarTerminated'])",message="is the name of a condition that is written otherwise"
	Name string `json:"name"`
	// containerName is the container that is asked. Pods without it are not.
	// +kubebuilder:validation:MinLength=1
	ContainerName string `json:"containerName"`
	// probe is how it is asked and how often.
	// +kubebuilder:validation:XValidation:rule="!has(self.grpc)",message="is not supported: use exec, httpGet or tcpSocket",fieldPath=".grpc",reason="FieldValueForbidden"
	// +kubebuilder:validation:XValidation:rule="has(self.exec) || has(self.httpGet) || has(self.tcpSocket) || has(self.grpc)",message="give exec, httpGet or tcpSocket",reason="FieldValueRequired"
	// +kubebuilder:validation:XValidation:rule="!has(self.exec) ? !has(self.httpGet) || !has(self.tcpSocket) : !has(self.httpGet) && !has(self.tcpSocket)",message="give only one of exec, httpGet and tcpSocket",reason="FieldValueForbidden"
	// +kubebuilder:validation:XValidation:rule="!has(self.exec) || has(self.exec.command) && size(self.exec.command) > 0",message="give the command to run",fieldPath=".exec.command",reason="FieldValueRequired"
	// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || has(self.httpGet.path) && self.httpGet.path != ''",message="give the path to get",fieldPath=".httpGet.path",reason="FieldValueRequired"
	// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || !has(self.httpGet.scheme) || self.httpGet.scheme in ['', 'HTTP', 'HTTPS']",message="must be HTTP or HTTPS",fieldPath=".httpGet.scheme"
	// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || !has(self.httpGet.host) || self.httpGet.host == ''",message="the host is always the Pod",fieldPath=".httpGet.host",reason="FieldValueForbidden"
	// +kubebuilder:validation:XValidation:rule="!has(self.tcpSocket) || !has(self.tcpSocket.host) || self.tcpSocket.host == ''",message="the host is always the Pod",fieldPath=".tcpSocket.host",reason="FieldValueForbidden"
	// +kubebuilder:validation:XValidation:rule="(!has(self.initialDelaySeconds) || self.initialDelaySeconds >= 0) && (!has(self.timeoutSeconds) || self.timeoutSeconds >= 0) && (!has(self.periodSeconds) || self.periodSeconds >= 0) && (!has(self.successThreshold) || self.successThreshold >= 0) && (!has(self.failureThreshold) || self.failureThreshold >= 0)",message="initialDelaySeconds, timeoutSeconds, periodSeconds, successThreshold and failureThreshold must not be negative"
	Probe ContainerProbeSpec `json:"probe"`
	// markerPolicy says which labels and annotations a Pod gets for which answer. The keys that it had for the other answer are taken off.
	// An answer that is unknown changes nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self[0].state != self[1].state",message="Duplicate value: give one policy for each state"
	MarkerPolicy []ProbeMarkerPolicy `json:"markerPolicy,omitempty"`
	// podConditionType is the type of the Pod condition that shows the answer: True for success, else False, with the probe's output as its
	// message. Required when there is no markerPolicy.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!(self in ['PodScheduled', 'Initialized', 'Ready', 'ContainersReady', 'DisruptionTarget', 'PodReadyToStartContainers', 'PodResizePending', 'PodResizeInProgress', 'AllContainersRestarting', 'KruisePodReady', 'InPlaceUpdateReady', 'SidecarSetUpgradable', 'SidecarTerminated'])",message="is a condition that is written otherwise"
	// +kubebuilder:validation:XValidation:rule="self == '' || !format.qualifiedName().validate(self).hasValue()",message="must be a name such as example.com/warm or Warm: letters, digits, '-', '_' and '.'"
	PodConditionType string `json:"podConditionType,omitempty"`
}

// ContainerProbeSpec is a probe of core/v1. Of exec, httpGet and tcpSocket exactly one is given; initialDelaySeconds, timeoutSeconds,
// periodSeconds, successThreshold and failureThreshold default to 1. The host is always the Pod.
type ContainerProbeSpec struct {
	corev1.Probe `json:",inline"`
}

// ProbeMarkerPolicy is what a Pod gets for one answer.
//
// +kubebuilder:validation:XValidation:rule="has(self.labels) && size(self.labels) > 0 || has(self.annotations) && size(self.annotations) > 0",message="give labels or annotations",reason="FieldValueRequired"
type ProbeMarkerPolicy struct {
	// state is the answer: Succeeded or Failed. Each can be named once.
	// +kubebuilder:validation:Enum=Succeeded;Failed
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
