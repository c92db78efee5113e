package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// PersistentPodState records where the Pods of a workload ran, and has a new Pod of the same name run there again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
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
	Status v1beta1.PersistentPodStateStatus `json:"status,omitempty"`
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
	v1beta1.PersistentPodStateBaseSpec `json:",inline"`

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

// NodeTopologyTerm is a list of node labels.
type NodeTopologyTerm struct {
	// nodeTopologyKeys are the keys of node labels, such as kubernetes.io/hostname or topology.kubernetes.io/zone. A label that a node
	// lacks is not recorded of it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	NodeTopologyKeys []string `json:"nodeTopologyKeys"`
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
