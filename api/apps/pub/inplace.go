package pub

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InPlaceUpdateReady is the readiness gate that keeps a Pod out of service while it is updated in place.
const InPlaceUpdateReady corev1.PodConditionType = "InPlaceUpdateReady"

// KruisePodReady is the readiness gate by which lifecycle hooks take a Pod out of service.
const KruisePodReady corev1.PodConditionType = "KruisePodReady"

// InPlaceUpdateState is the record of a Pod's last in-place update, kept as JSON in the annotation
// apps.kruise.io/inplace-update-state.
//
// Wire: other tools read this JSON; the first three fields are always written.
type InPlaceUpdateState struct {
	// Revision is the name of the revision that the Pod is updated to.
	Revision string `json:"revision"`
	// UpdateTimestamp is when the update began.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// LastContainerStatuses holds, by container, what ran before the container's image was changed.
	LastContainerStatuses map[string]InPlaceUpdateContainerStatus `json:"lastContainerStatuses"`
	// UpdateEnvFromMetadata is true when a container takes a changed label or annotation as an environment variable.
	UpdateEnvFromMetadata bool `json:"updateEnvFromMetadata,omitempty"`
	// UpdateResources is true when a container's requests or limits change.
	UpdateResources bool `json:"updateResources,omitempty"`
	// UpdateImages is true when a container's image changes.
	UpdateImages bool `json:"updateImages,omitempty"`
	// NextContainerImages are the images that later batches will set, by container.
	NextContainerImages map[string]string `json:"nextContainerImages,omitempty"`
	// NextContainerRefMetadata are the labels and annotations that later batches will set, by the container that reads them.
	NextContainerRefMetadata map[string]metav1.ObjectMeta `json:"nextContainerRefMetadata,omitempty"`
	// NextContainerResources are the resources that later batches will set, by container.
	NextContainerResources map[string]corev1.ResourceRequirements `json:"nextContainerResources,omitempty"`
	// PreCheckBeforeNext must hold before the next batch starts.
	PreCheckBeforeNext *InPlaceUpdatePreCheckBeforeNext `json:"preCheckBeforeNext,omitempty"`
	// ContainerBatchesRecord lists the batches done, in order.
	ContainerBatchesRecord []InPlaceUpdateContainerBatch `json:"containerBatchesRecord,omitempty"`
}

// InPlaceUpdatePreCheckBeforeNext is what must hold before the next batch of containers is changed.
type InPlaceUpdatePreCheckBeforeNext struct {
	// ContainersRequiredReady are the containers that must be ready.
	ContainersRequiredReady []string `json:"containersRequiredReady,omitempty"`
}

// InPlaceUpdateContainerBatch is one batch of containers that were changed together.
type InPlaceUpdateContainerBatch struct {
	// Timestamp is when the batch was written to the Pod.
	Timestamp metav1.Time `json:"timestamp"`
	// Containers are the names of the containers, sorted.
	Containers []string `json:"containers"`
}

// InPlaceUpdateContainerStatus is what is remembered of a container before its image is changed.
type InPlaceUpdateContainerStatus struct {
	// ImageID is the image that the container ran.
	ImageID string `json:"imageID,omitempty"`
	// ContainerID is the container itself: another one tells a restart apart from an image that merely has another tag as well. Records of
	// other software do not have it.
	ContainerID string `json:"containerID,omitempty"`
	// Image is the image that was replaced in the container's spec. Records of other software do not have it.
	Image string `json:"image,omitempty"`
}

// RuntimeContainerMetaSet is what the node daemon knows of the containers that really run, kept as JSON in the annotation
// apps.kruise.io/runtime-containers-meta.
type RuntimeContainerMetaSet struct {
	Containers []RuntimeContainerMeta `json:"containers"`
}

// RuntimeContainerMeta is what really runs as one container.
type RuntimeContainerMeta struct {
	Name         string                 `json:"name"`
	ContainerID  string                 `json:"containerID"`
	RestartCount int32                  `json:"restartCount"`
	Hashes       RuntimeContainerHashes `json:"hashes"`
}

// RuntimeContainerHashes are the fingerprints of one running container.
type RuntimeContainerHashes struct {
	// PlainHash is the hash of the container's spec that the kubelet put on it.
	PlainHash uint64 `json:"plainHash"`
	// ExtractedEnvFromMetadataHash is the hash of the environment variables that come from labels and annotations, with their values.
	ExtractedEnvFromMetadataHash uint64 `json:"extractedEnvFromMetadataHash,omitempty"`
}
