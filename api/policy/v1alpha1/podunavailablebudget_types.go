// Package v1alpha1 is the older spelling of policy.kruise.io. It is served and converted to v1beta1, losslessly both ways.
//
// +kubebuilder:object:generate=true
// +groupName=policy.kruise.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "policy.kruise.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &PodUnavailableBudget{}, &PodUnavailableBudgetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// PodUnavailableBudget keeps so many Pods of an application available, whoever wants to delete, evict, update in place, resize or mark them
// as unavailable.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pub
// +kubebuilder:printcolumn:name="Allowed",type="integer",JSONPath=".status.unavailableAllowed",description="The number of Pods that may be made unavailable now."
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.currentAvailable",description="The number of Pods that are available."
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desiredAvailable",description="The number of Pods that are to stay available."
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.totalReplicas",description="The number of Pods that there should be."
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec PodUnavailableBudgetSpec `json:"spec,omitempty"`
	// status is what was last seen, and the ledger of what was permitted since.
	// +optional
	Status v1beta1.PodUnavailableBudgetStatus `json:"status,omitempty"`
}

// PodUnavailableBudgetList is a list of PodUnavailableBudgets.
//
// +kubebuilder:object:root=true
type PodUnavailableBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodUnavailableBudget `json:"items"`
}

// PodUnavailableBudgetSpec says which Pods are guarded, and how many of them are to stay available. What this version has no field for is
// said by annotations of the budget: kruise.io/pub-protect-operations lists, with commas, what the budget guards against,
// pub.kruise.io/protect-total-replicas is the number of Pods that there should be, and pub.kruise.io/ignored-pod-selector, as JSON, a
// selector of Pods that are not guarded.
type PodUnavailableBudgetSpec struct {
	v1beta1.PodUnavailableBudgetBaseSpec `json:",inline"`
}
