package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// ImagePullJob brings one image onto many nodes before Pods need it there.
//
// Its fields are those of v1beta1.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of nodes that are to have the image."
// +kubebuilder:printcolumn:name="ACTIVE",type="integer",JSONPath=".status.active",description="The number of nodes that are pulling it."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of nodes that have it."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of nodes that have given up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the ImagePullJob was created."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message",description="How far the job has come."
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.completionTime) || !has(oldSelf.spec) || has(self.spec) && self.spec == oldSelf.spec",message="may not be changed: the job has completed; create a new one to pull again",fieldPath=".spec",reason="FieldValueForbidden"
type ImagePullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec v1beta1.ImagePullJobSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status v1beta1.ImagePullJobStatus `json:"status,omitempty"`
}

// ImagePullJobList is a list of ImagePullJobs.
//
// +kubebuilder:object:root=true
type ImagePullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ImagePullJob `json:"items"`
}
