package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PersistentPodState records where the Pods of a workload ran, and has a new Pod of the same name run there again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=pps
// +kubebuilder:printcolumn:name="KIND",type="string",JSONPath=".spec.targetRef.kind",description="The kind of the workload."
// +kubebuilder:printcolumn:name="TARGET",type="string",JSONPath=".spec.targetRef.name",description="The name of the workload."
// +kubebuilder:printcolumn:name="RECORDED",type="integer",JSONPath=".status.recorded",description="The number of Pods of which it is recorded where they ran."
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the Pods of the workload are recorded, and come back where they ran."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the PersistentPodState was created."
type PersistentPodState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec PersistentPodStateSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status PersistentPodStateStatus `json:"status,omitempty"`
}

// PersistentPodStateList is a list of PersistentPodStates.
//
// +kubebuilder:object:root=true
type PersistentPodStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PersistentPodState `json:"items"`
}

// PersistentPodStateSpec says what is recorded of the Pods of a workload, and how a new Pod is bound to it.
//
// +kubebuilder:validation:XValidation:rule="has(self.requiredPersistentTopology) || has(self.preferredPersistentTopology)",message="must have requiredPersistentTopology, preferredPersistentTopology or both"
type PersistentPodStateSpec struct {
	PersistentPodStateBaseSpec `json:",inline"`

	// requiredPersistentTopology are the node labels that the node of a new Pod must have with the values that were recorded. They are
	// merged into the nodeSelector of the Pod. None by default.
	// +optional
	RequiredPersistentTopology *NodeTopologyTerm `json:"requiredPersistentTopology,omitempty"`
	// preferredPersistentTopology are the node labels whose recorded values are preferred for a new Pod, with a weight for each term. Each
	// becomes a preferred node affinity of the Pod. None by default.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	PreferredPersistentTopology []PreferredTopologyTerm `json:"preferredPersistentTopology,omitempty"`
}

// PersistentPodStateBaseSpec is what both versions say in the same words.
type PersistentPodStateBaseSpec struct {
	// targetRef is the workload whose Pods are recorded: a StatefulSet of apps or of apps.kruise.io, a CloneSet, or a kind that the list
	// PPS_Watch_Custom_Workload_WhiteList of the ConfigMap kruise-configuration names. A Pod of a CloneSet comes back with its instance id,
	// which the CloneSet gives again with scaleStrategy.enablePVCReuse. It can't be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	TargetRef PersistentPodStateTarget `json:"targetRef"`
	// persistentPodAnnotations are annotations of Pods that are recorded along. None by default.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	PersistentPodAnnotations []PersistentPodAnnotation `json:"persistentPodAnnotations,omitempty"`
	// persistentPodLabels are labels of Pods that are recorded along, and that a new Pod gets where it does not set them itself. Its other
	// labels decide which SidecarSets and WorkloadSpreads it is of. None by default.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	PersistentPodLabels []PersistentPodLabel `json:"persistentPodLabels,omitempty"`
	// previousNodes is how many nodes on which the Pod of a name ran before the recorded one are remembered. A new Pod that is bound to its
	// place prefers them, the later ones more than the earlier ones, with weights of 50, 25 and so on. 0 by default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	PreviousNodes int32 `json:"previousNodes,omitempty"`
	// persistentPodStateRetentionPolicy says when a record is dropped: WhenScaled, the default, as soon as the workload has no place for
	// the Pod any more; WhenDeleted only when the workload is deleted, so that a Pod comes back where it ran also after the workload was
	// scaled in and out.
	// +optional
	PersistentPodStateRetentionPolicy PersistentPodStateRetentionPolicy `json:"persistentPodStateRetentionPolicy,omitempty"`
	// restoreAnnotations says whether a new Pod gets the annotations that were recorded, where it does not set them itself. True by
	// default.
	// +optional
	RestoreAnnotations *bool `json:"restoreAnnotations,omitempty"`
	// fallback says what becomes of a Pod whose place is gone or taken. Without it such a Pod stays pending until the place is free, as the
	// required topology has it.
	// +optional
	Fallback *PersistentPodStateFallback `json:"fallback,omitempty"`
	// maxAgeSeconds is how long a record is kept after its Pod has gone or stopped being ready. For ever by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`
	// recordPodIPs records the addresses of Pods, and gives those of the Pod before to a new Pod that is bound to its place, in the
	// annotation kruise.io/previous-pod-ips with commas between them: for a network that can assign the same ones again. False by default.
	// +optional
	RecordPodIPs bool `json:"recordPodIPs,omitempty"`
	// avoidUnavailableNodes leaves a recorded value out of a new Pod if all nodes that have it are cordoned or have a taint with the effect
	// NoExecute, as nodes that are drained or lost have. False by default: such a Pod waits for its node where the topology is required.
	// +optional
	AvoidUnavailableNodes bool `json:"avoidUnavailableNodes,omitempty"`
}

// PersistentPodStateTarget names a workload in the namespace of the PersistentPodState.
type PersistentPodStateTarget struct {
	// apiVersion is the group and version of the workload. Any version of the group will do.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]+$`
	APIVersion string `json:"apiVersion"`
	// kind is the kind of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*$`
	Kind string `json:"kind"`
	// name is the name of the workload, which need not exist yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// NodeTopologyTerm is a list of node labels.
type NodeTopologyTerm struct {
	// keys are the keys of node labels, such as kubernetes.io/hostname or topology.kubernetes.io/zone. A label that a node lacks is not
	// recorded of it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	Keys []string `json:"keys"`
}

// PreferredTopologyTerm is a list of node labels, and how much they count.
type PreferredTopologyTerm struct {
	// weight is how much the scheduler prefers nodes that match this term, 1 to 100.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
	// preference are the node labels, all of which have to match.
	Preference NodeTopologyTerm `json:"preference"`
}

// PersistentPodAnnotation names an annotation of Pods.
type PersistentPodAnnotation struct {
	// key is the key of the annotation.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
}

// PersistentPodLabel names a label of Pods.
type PersistentPodLabel struct {
	// key is the key of the label. Labels of Kubernetes and of Kruise can't be recorded: they say what a Pod is, not what it was.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|[.])(kubernetes|k8s|kruise)[.]io/') && !(self in ['controller-revision-hash', 'pod-template-hash'])",message="must not be a label of Kubernetes or Kruise"
	Key string `json:"key"`
}

// PersistentPodStateRetentionPolicy says when a record is dropped.
//
// +kubebuilder:validation:Enum="";WhenScaled;WhenDeleted
type PersistentPodStateRetentionPolicy string

const (
	// PersistentPodStateRetentionWhenScaled drops the record of a Pod that the workload has no place for any more, once the Pod is gone.
	PersistentPodStateRetentionWhenScaled PersistentPodStateRetentionPolicy = "WhenScaled"
	// PersistentPodStateRetentionWhenDeleted keeps all records until the workload is deleted.
	PersistentPodStateRetentionWhenDeleted PersistentPodStateRetentionPolicy = "WhenDeleted"
)

// PersistentPodStateFallback says what becomes of a Pod whose place is gone or taken.
type PersistentPodStateFallback struct {
	// afterSeconds is how long a Pod that was bound to its recorded place may be unschedulable before its record is dropped. 300 by
	// default.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	AfterSeconds int32 `json:"afterSeconds,omitempty"`
	// action says what becomes of the Pod then: Ignore, the default, leaves it alone, so that the next Pod of the name is free; Delete
	// deletes it, so that its workload makes the next one at once. With both, a recorded value that no node has any more is left out of a
	// new Pod.
	// +optional
	// +kubebuilder:default=Ignore
	Action PersistentPodStateFallbackAction `json:"action,omitempty"`
}

// PersistentPodStateFallbackAction says what becomes of a Pod that can't be scheduled where it ran.
//
// +kubebuilder:validation:Enum=Ignore;Delete
type PersistentPodStateFallbackAction string

const (
	// PersistentPodStateFallbackIgnore leaves the Pod alone.
	PersistentPodStateFallbackIgnore PersistentPodStateFallbackAction = "Ignore"
	// PersistentPodStateFallbackDelete deletes the Pod.
	PersistentPodStateFallbackDelete PersistentPodStateFallbackAction = "Delete"
)

// PersistentPodStateReady is the type of the condition that says whether the Pods of the workload are recorded, and come back where they
// ran. Its reason is one of those below.
const PersistentPodStateReady = "Ready"

// Reasons of the condition Ready.
const (
	// PersistentPodStateRecording means that all is well.
	PersistentPodStateRecording = "Recording"
	// PersistentPodStateTargetNotFound means that there is no workload of the name.
	PersistentPodStateTargetNotFound = "TargetNotFound"
	// PersistentPodStateTargetDeleting means that the workload is being deleted.
	PersistentPodStateTargetDeleting = "TargetDeleting"
	// PersistentPodStateNamesNotReused means that the workload is a CloneSet that gives each new Pod another instance id.
	PersistentPodStateNamesNotReused = "NamesNotReused"
	// PersistentPodStateUnschedulable means that Pods are not scheduled where they ran.
	PersistentPodStateUnschedulable = "PodsUnschedulable"
	// PersistentPodStateTooMany means that there is no room for the records of all Pods.
	PersistentPodStateTooMany = "TooManyRecords"
)

// PersistentPodStateStatus is what was last seen of a PersistentPodState.
type PersistentPodStateStatus struct {
	// observedGeneration is the generation of the spec that the status speaks of.
	ObservedGeneration int64 `json:"observedGeneration"`
	// podStates are the records, by the names of Pods.
	// +optional
	PodStates map[string]PodState `json:"podStates,omitempty"`
	// recorded is the number of records.
	// +optional
	Recorded int32 `json:"recorded"`
	// conditions hold the condition Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodState is where a Pod ran when it was last ready.
type PodState struct {
	// nodeName is the node.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// nodeTopologyLabels are the labels that the node had, of those that the spec names.
	// +optional
	NodeTopologyLabels map[string]string `json:"nodeTopologyLabels,omitempty"`
	// annotations are those that the Pod had, of those that the spec names.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// labels are those that the Pod had, of those that the spec names.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// previousNodes are the nodes on which the Pod of the name ran before, the last one first, as many as the spec wants.
	// +optional
	PreviousNodes []string `json:"previousNodes,omitempty"`
	// podIPs are the addresses that the Pod had, where the spec has recordPodIPs.
	// +optional
	PodIPs []string `json:"podIPs,omitempty"`
	// releasedTime is since when no Pod of the name has been ready on the node. It is only kept where the spec has maxAgeSeconds.
	// +optional
	ReleasedTime *metav1.Time `json:"releasedTime,omitempty"`
}
