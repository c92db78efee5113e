package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// UnitedDeployment keeps one workload for each of several domains, such as zones or node pools, all made from one template, and divides a
// number of Pods among them. Its spec is that of v1beta1.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=ud
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The number of Pods wanted."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="The number of Pods there are."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of Pods of the newest template."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of Pods that are ready."
// +kubebuilder:printcolumn:name="WAVE",type="string",JSONPath=".status.wave",priority=1,description="The wave of the rollout that is under way."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the UnitedDeployment was created."
type UnitedDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec v1beta1.UnitedDeploymentSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status UnitedDeploymentStatus `json:"status,omitempty"`
}

// UnitedDeploymentList is a list of UnitedDeployments.
//
// +kubebuilder:object:root=true
type UnitedDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UnitedDeployment `json:"items"`
}

// UnitedDeploymentStatus is what was last seen of a UnitedDeployment.
type UnitedDeploymentStatus struct {
	v1beta1.UnitedDeploymentBaseStatus `json:",inline"`

	// updateStatus tells how the rollout stands.
	// +optional
	UpdateStatus *UpdateStatus `json:"updateStatus,omitempty"`

	// subsetReplicas are the numbers of Pods that the subsets are to have, by name.
	// +optional
	SubsetReplicas map[string]int32 `json:"subsetReplicas,omitempty"`
}

// UpdateStatus tells how a rollout stands.
type UpdateStatus struct {
	// updatedRevision is the name of the revision of the newest template.
	// +optional
	UpdatedRevision string `json:"updatedRevision,omitempty"`
	// currentPartitions are the numbers of Pods that are to stay at their old template, by the names of subsets.
	// +optional
	CurrentPartitions map[string]int32 `json:"currentPartitions,omitempty"`
}
