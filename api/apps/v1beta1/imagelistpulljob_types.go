package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ImageListPullJob brings several images onto the same nodes, by one ImagePullJob for each.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of images."
// +kubebuilder:printcolumn:name="SUCCEEDED",type="integer",JSONPath=".status.succeeded",description="The number of images that all nodes have."
// +kubebuilder:printcolumn:name="COMPLETED",type="integer",JSONPath=".status.completed",description="The number of images that no node is pulling any more."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the ImageListPullJob was created."
type ImageListPullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec ImageListPullJobSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status ImageListPullJobStatus `json:"status,omitempty"`
}

// ImageListPullJobList is a list of ImageListPullJobs.
//
// +kubebuilder:object:root=true
type ImageListPullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ImageListPullJob `json:"items"`
}

// ImageListPullJobSpec is the wanted state of an ImageListPullJob.
type ImageListPullJobSpec struct {
	// images are the images to pull, each once, at most 255. One that is taken out is pulled no further; one that is added is pulled too.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Images []string `json:"images"`

	ImagePullJobTemplate `json:",inline"`
}

// ImageListPullJobStatus is what was last seen of an ImageListPullJob.
type ImageListPullJobStatus struct {
	// startTime is when the job was first looked after.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the job was over; absent while it runs.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// desired is the number of images.
	// +optional
	Desired int32 `json:"desired"`
	// active is the number of images that some node is pulling.
	// +optional
	Active int32 `json:"active,omitempty"`
	// completed is the number of images that each node has pulled or given up.
	// +optional
	Completed int32 `json:"completed"`
	// succeeded is the number of images that all nodes have.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failedImageStatuses are the images that some node has given up, by image.
	// +optional
	FailedImageStatuses []*FailedImageStatus `json:"failedImageStatuses,omitempty"`
}

// FailedImageStatus is an image that some node has given up.
type FailedImageStatus struct {
	// imagePullJob is the name of the job for the image.
	// +optional
	ImagePullJob string `json:"imagePullJob,omitempty"`
	// name is the image.
	// +optional
	Name string `json:"name,omitempty"`
	// message says where to find out more.
	// +optional
	Message string `json:"message,omitempty"`
}
