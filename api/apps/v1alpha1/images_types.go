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

// ImageListPullJob brings several images onto the same nodes, by one ImagePullJob for each.
//
// Its fields are those of v1beta1.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of images."
// +kubebuilder:printcolumn:name="SUCCEEDED",type="integer",JSONPath=".status.succeeded",description="The number of images that all nodes have."
// +kubebuilder:printcolumn:name="COMPLETED",type="integer",JSONPath=".status.completed",description="The number of images that no node is pulling any more."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the ImageListPullJob was created."
type ImageListPullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec v1beta1.ImageListPullJobSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status v1beta1.ImageListPullJobStatus `json:"status,omitempty"`
}

// ImageListPullJobList is a list of ImageListPullJobs.
//
// +kubebuilder:object:root=true
type ImageListPullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ImageListPullJob `json:"items"`
}

// NodeImage lists the images that the node of the same name is to pull. ImagePullJobs write into its spec, and so may users who mean one
// definite node; the daemon of the node answers in its status. Both speak of one round of pulling by the image, the tag and the version of
// the tag.
//
// Its fields are those of v1beta1, but for the mode of a reference to a Secret, for which an annotation stands.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desired",description="The number of tags to pull."
// +kubebuilder:printcolumn:name="PULLING",type="integer",JSONPath=".status.pulling",description="The number of tags that are being pulled."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of tags that the node has."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of tags that the node has given up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the NodeImage was created."
type NodeImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec NodeImageSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status v1beta1.NodeImageStatus `json:"status,omitempty"`
}

// NodeImageList is a list of NodeImages.
//
// +kubebuilder:object:root=true
type NodeImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeImage `json:"items"`
}

// NodeImageSpec is the wanted state of a NodeImage.
type NodeImageSpec struct {
	// images are the tags to pull, by repository: nginx, quay.io/a/b. Repositories of Docker Hub are named as users do, without
	// docker.io/library. At most 256.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) > 0)",message="the name of an image can not be empty"
	Images map[string]ImageSpec `json:"images,omitempty"`
}

// ImageSpec is what to pull of one repository.
type ImageSpec struct {
	// pullSecrets are the Secrets with credentials for the repository. The daemon of the node can read those of one namespace only.
	// +optional
	PullSecrets []ReferenceObject `json:"pullSecrets,omitempty"`
	// tags are the tags to pull, sorted, each once.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=tag
	Tags []v1beta1.ImageTagSpec `json:"tags,omitempty"`
	// sandboxConfig holds labels and annotations that the container runtime is given with the pull.
	// +optional
	SandboxConfig *v1beta1.SandboxConfig `json:"sandboxConfig,omitempty"`
}

// ReferenceObject names an object of a namespace.
type ReferenceObject struct {
	// namespace is the namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the object.
	// +optional
	Name string `json:"name,omitempty"`
}
