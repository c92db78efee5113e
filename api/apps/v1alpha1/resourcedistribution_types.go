package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// ResourceDistribution copies a Secret or a ConfigMap into many namespaces, and keeps the copies as it says.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=distributor
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of namespaces that are to have a copy."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of namespaces that have one."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of namespaces that have none, or an outdated one."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the ResourceDistribution was created."
type ResourceDistribution struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec ResourceDistributionSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status ResourceDistributionStatus `json:"status,omitempty"`
}

// ResourceDistributionList is a list of ResourceDistributions.
//
// +kubebuilder:object:root=true
type ResourceDistributionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceDistribution `json:"items"`
}

// ResourceDistributionSpec says what is copied, and to where.
//
// +kubebuilder:validation:XValidation:rule="has(self.resource) != has(self.resourceFrom)",message="must have either resource or resourceFrom"
// +kubebuilder:validation:XValidation:rule="has(self.resource) == has(oldSelf.resource)",message="resource can't be exchanged for resourceFrom, nor the other way round"
// +kubebuilder:validation:XValidation:rule="(has(self.copies) && has(self.copies.name) ? self.copies.name : \"\") == (has(oldSelf.copies) && has(oldSelf.copies.name) ? oldSelf.copies.name : \"\")",message="copies.name is immutable"
type ResourceDistributionSpec struct {
	v1beta1.ResourceDistributionBaseSpec `json:",inline"`

	// targets are the namespaces that get a copy. None by default.
	Targets ResourceDistributionTargets `json:"targets"`
}

// ResourceDistributionTargets are namespaces. Those that any of the first three fields names get a copy, without those that are excluded.
// kube-system and kube-public never get one.
type ResourceDistributionTargets struct {
	v1beta1.ResourceDistributionNamedTargets `json:",inline"`

	// namespaceLabelSelector selects namespaces by their labels. An empty one, the default, selects none.
	// +optional
	NamespaceLabelSelector metav1.LabelSelector `json:"namespaceLabelSelector,omitempty"`
}

// ResourceDistributionCondition says whether there is a problem of one sort, and in which namespaces.
type ResourceDistributionCondition struct {
	v1beta1.ResourceDistributionConditionBase `json:",inline"`

	// failedNamespace are the namespaces with the problem, at most 1000.
	// +optional
	FailedNamespace []string `json:"failedNamespace,omitempty"`
}

// ResourceDistributionStatus is what was last seen of a ResourceDistribution.
type ResourceDistributionStatus struct {
	v1beta1.ResourceDistributionBaseStatus `json:",inline"`

	// conditions are always seven, in one order: GetResourceFailed, CreateResourceFailed, UpdateResourceFailed, DeleteResourceFailed,
	// ConflictOccurred, NamespaceNotExists, Ready.
	// +optional
	Conditions []ResourceDistributionCondition `json:"conditions,omitempty"`
}
