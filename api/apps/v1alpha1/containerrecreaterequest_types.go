package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// ContainerRecreateRequest asks the daemon of a Pod's node to stop containers of that Pod, so that the kubelet starts them anew. The Pod,
// its address and its volumes stay.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=crr
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase",description="How far the request has come."
// +kubebuilder:printcolumn:name="POD",type="string",JSONPath=".spec.podName",description="The Pod whose containers are recreated."
// +kubebuilder:printcolumn:name="NODE",type="string",JSONPath=".metadata.labels.crr\\.apps\\.kruise\\.io/node-name",description="The node of the Pod."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the request was made."
type ContainerRecreateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for. It can't be changed, but for ttlSecondsAfterFinished and a deadline where there was none.
	Spec v1beta1.ContainerRecreateRequestSpec `json:"spec"`
	// status is what was done.
	// +optional
	Status ContainerRecreateRequestStatus `json:"status,omitempty"`
}

// ContainerRecreateRequestList is a list of ContainerRecreateRequests.
//
// +kubebuilder:object:root=true
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ContainerRecreateRequest `json:"items"`
}

// ContainerRecreateRequestStatus is what was done.
type ContainerRecreateRequestStatus struct {
	// phase is empty until the daemon has seen the request, then Pending behind another request of the same Pod, Recreating, and Completed.
	// +optional
	Phase v1beta1.ContainerRecreateRequestPhase `json:"phase,omitempty"`
	// completionTime is when the request ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// message says why the request ended before its containers were recreated.
	// +optional
	Message string `json:"message,omitempty"`
	// containerRecreateStates says of each container how far it has come.
	// +optional
	// +listType=atomic
	ContainerRecreateStates []v1beta1.ContainerRecreateRequestContainerRecreateState `json:"containerRecreateStates,omitempty"`
	// conditions are PreRecreateGrace, and Succeeded once the request has ended. The annotation crr.apps.kruise.io/unready-acquired tells
	// of the first, too.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
