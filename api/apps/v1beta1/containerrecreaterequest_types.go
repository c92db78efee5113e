package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainerRecreateRequest asks the daemon of a Pod's node to stop containers of that Pod, so that the kubelet starts them anew. The Pod,
// its address and its volumes stay.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=crr
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase",description="How far the request has come."
// +kubebuilder:printcolumn:name="POD",type="string",JSONPath=".spec.podName",description="The Pod whose containers are recreated."
// +kubebuilder:printcolumn:name="NODE",type="string",JSONPath=".metadata.labels.crr\\.apps\\.kruise\\.io/node-name",description="The node of the Pod."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the request was made."
type ContainerRecreateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for. It can't be changed, but for ttlSecondsAfterFinished and a deadline where there was none.
	Spec ContainerRecreateRequestSpec `json:"spec"`
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

// ContainerRecreateRequestSpec is what a request asks for.
//
// +kubebuilder:validation:XValidation:rule="self.podName == oldSelf.podName",message="is immutable: make another request",fieldPath=".podName",reason="FieldValueForbidden"
type ContainerRecreateRequestSpec struct {
	// podName is the name of the Pod, in the namespace of the request.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="podName can not be empty",reason="FieldValueRequired"
	PodName string `json:"podName"`
	// containers are the containers to recreate, in this order. Each can be named once. At most 256.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="containers can not be empty",reason="FieldValueRequired"
	Containers []ContainerRecreateRequestContainer `json:"containers"`
	// strategy says how they are recreated.
	// +optional
	Strategy *ContainerRecreateRequestStrategy `json:"strategy,omitempty"`
	// activeDeadlineSeconds is after how many seconds from its creation the request ends, done or not. At least 3; none by default.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 3",message="activeDeadlineSeconds can not be less than 3s"
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// ttlSecondsAfterFinished is after how many seconds from its end the request is deleted. By default it is kept.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must not be negative"
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContainerRecreateRequestContainer is a container to recreate. Only its name is given by the user: the rest is filled in when the request
// is created, so that a later change of the Pod can't redirect it.
type ContainerRecreateRequestContainer struct {
	// name is the name of a container of the Pod, or of an init container that runs as a sidecar.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="name the container",reason="FieldValueRequired"
	Name string `json:"name"`
	// preStop is the container's hook before it is stopped. Filled in on creation.
	// +optional
	PreStop *corev1.LifecycleHandler `json:"preStop,omitempty"`
	// ports are the container's ports, by which a preStop of type httpGet can name its port. Filled in on creation.
	// +optional
	// +listType=atomic
	Ports []corev1.ContainerPort `json:"ports,omitempty"`
	// statusContext is the container that ran when the request was created: another one is a recreated one. Filled in on creation.
	// +optional
	StatusContext *ContainerRecreateRequestContainerContext `json:"statusContext,omitempty"`
}

// ContainerRecreateRequestContainerContext identifies a container that ran.
type ContainerRecreateRequestContainerContext struct {
	// containerID is the identity of the container, as runtime://id.
	ContainerID string `json:"containerID"`
	// restartCount is how often it had been restarted.
	RestartCount int32 `json:"restartCount"`
}

// ContainerRecreateRequestFailurePolicyType says what a container that can't be recreated means for the others.
//
// +kubebuilder:validation:Enum=Fail;Ignore
type ContainerRecreateRequestFailurePolicyType string

const (
	// ContainerRecreateRequestFailurePolicyFail ends the request with the first failure.
	ContainerRecreateRequestFailurePolicyFail ContainerRecreateRequestFailurePolicyType = "Fail"
	// ContainerRecreateRequestFailurePolicyIgnore goes on with the other containers.
	ContainerRecreateRequestFailurePolicyIgnore ContainerRecreateRequestFailurePolicyType = "Ignore"
)

// ContainerRecreateRequestStrategy says how containers are recreated.
type ContainerRecreateRequestStrategy struct {
	// failurePolicy says whether a container that can't be recreated ends the request (Fail) or is passed over (Ignore). Defaults to Fail.
	// +optional
	FailurePolicy ContainerRecreateRequestFailurePolicyType `json:"failurePolicy,omitempty"`
	// orderedRecreate waits for each new container to be ready before the next one is stopped. Defaults to false.
	// +optional
	OrderedRecreate bool `json:"orderedRecreate,omitempty"`
	// forceRecreate stops a container also when it has been restarted by itself since the request was created. Defaults to false.
	// +optional
	ForceRecreate bool `json:"forceRecreate,omitempty"`
	// terminationGracePeriodSeconds is how many seconds preStop and the end of the container may take together before it is killed.
	// Defaults to that of the Pod.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must not be negative"
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// unreadyGracePeriodSeconds takes the Pod out of service first and waits for so many seconds before the first container is stopped. It
	// takes a Pod with the readiness gate KruisePodReady; others are waited for but stay in service. By default nothing is waited for.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must not be negative"
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`
	// minStartedSeconds is for how many seconds a new container must have run, and be ready, before it counts. Defaults to 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must not be negative"
	MinStartedSeconds int32 `json:"minStartedSeconds,omitempty"`
}

// ContainerRecreateRequestPhase is how far a request, or one of its containers, has come.
type ContainerRecreateRequestPhase string

const (
	// ContainerRecreateRequestPending waits: a request for another one of the same Pod, a container to be stopped.
	ContainerRecreateRequestPending ContainerRecreateRequestPhase = "Pending"
	// ContainerRecreateRequestRecreating is under way.
	ContainerRecreateRequestRecreating ContainerRecreateRequestPhase = "Recreating"
	// ContainerRecreateRequestCompleted is a request that has ended, well or badly: see the condition Succeeded.
	ContainerRecreateRequestCompleted ContainerRecreateRequestPhase = "Completed"
	// ContainerRecreateRequestSucceeded is a container that was recreated.
	ContainerRecreateRequestSucceeded ContainerRecreateRequestPhase = "Succeeded"
	// ContainerRecreateRequestFailed is a container that could not be.
	ContainerRecreateRequestFailed ContainerRecreateRequestPhase = "Failed"
)

// Conditions of a ContainerRecreateRequest.
const (
	// ContainerRecreateRequestPreRecreateGrace is True since the Pod has been kept out of service for unreadyGracePeriodSeconds.
	ContainerRecreateRequestPreRecreateGrace = "PreRecreateGrace"
	// ContainerRecreateRequestConditionSucceeded is True once a request has ended with every container recreated, and False once it has
	// ended otherwise.
	ContainerRecreateRequestConditionSucceeded = "Succeeded"
)

// ContainerRecreateRequestStatus is what was done.
type ContainerRecreateRequestStatus struct {
	// phase is empty until the daemon has seen the request, then Pending behind another request of the same Pod, Recreating, and Completed.
	// +optional
	Phase ContainerRecreateRequestPhase `json:"phase,omitempty"`
	// completionTime is when the request ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// message says why the request ended before its containers were recreated.
	// +optional
	Message string `json:"message,omitempty"`
	// containerRecreateStates says of each container how far it has come. When a request ends by its deadline, or because its Pod is gone,
	// it says how far they had come by then.
	// +optional
	// +listType=atomic
	ContainerRecreateStates []ContainerRecreateRequestContainerRecreateState `json:"containerRecreateStates,omitempty"`
	// containerStatusSnapshot is what the Pod's status says of the new containers: of those that have restarted since the request was
	// created.
	// +optional
	// +listType=atomic
	ContainerStatusSnapshot []ContainerRecreateRequestSyncContainerStatus `json:"containerStatusSnapshot,omitempty"`
	// conditions are PreRecreateGrace, and Succeeded once the request has ended.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ContainerRecreateRequestContainerRecreateState is how far one container has come.
type ContainerRecreateRequestContainerRecreateState struct {
	// name is the name of the container.
	Name string `json:"name"`
	// phase is Pending, Recreating, Succeeded or Failed.
	Phase ContainerRecreateRequestPhase `json:"phase"`
	// message says why it waits or has failed.
	// +optional
	Message string `json:"message,omitempty"`
	// isKilled says that the daemon has set about stopping the container.
	// +optional
	IsKilled bool `json:"isKilled,omitempty"`
	// containerID is the container that the daemon has set about stopping, as runtime://id: should the daemon be restarted, it stops this
	// one and no other.
	// +optional
	ContainerID string `json:"containerID,omitempty"`
	// preStopTime is when the container's preStop had ended.
	// +optional
	PreStopTime *metav1.Time `json:"preStopTime,omitempty"`
}

// ContainerRecreateRequestSyncContainerStatus is what a Pod's status says of one container.
type ContainerRecreateRequestSyncContainerStatus struct {
	// name is the name of the container.
	Name string `json:"name"`
	// ready says whether the container is ready.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// restartCount is how often it has been restarted.
	// +optional
	RestartCount int32 `json:"restartCount,omitempty"`
	// containerID is its identity, as runtime://id.
	// +optional
	ContainerID string `json:"containerID,omitempty"`
}
