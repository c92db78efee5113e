package v1beta1

import corev1 "k8s.io/api/core/v1"

// SidecarContainer is a container of Kubernetes, with what there is to say about adding and updating it.
//
// Wire: the order of the fields is that of the bytes that the hash of a SidecarSet is made of.
type SidecarContainer struct {
	// The fields of a container of Kubernetes.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	corev1.Container `json:",inline"`
	// podInjectPolicy is the place of the container: BeforeAppContainer or AfterAppContainer, those of the Pod itself. Defaults to
	// BeforeAppContainer for containers and to AfterAppContainer for initContainers.
	// +optional
	PodInjectPolicy PodInjectPolicyType `json:"podInjectPolicy,omitempty"`
	// upgradeStrategy says how a new image reaches the container in existing Pods.
	// +optional
	UpgradeStrategy SidecarContainerUpgradeStrategy `json:"upgradeStrategy,omitempty"`
	// shareVolumePolicy says whether the container also mounts what the Pod's own containers mount.
	// +optional
	ShareVolumePolicy ShareVolumePolicy `json:"shareVolumePolicy,omitempty"`
	// shareVolumeDevicePolicy says the same of block devices. Unset, it does not.
	// +optional
	ShareVolumeDevicePolicy *ShareVolumePolicy `json:"shareVolumeDevicePolicy,omitempty"`
	// transferEnv are environment variables copied from the Pod's own containers.
	// +optional
	// +listType=atomic
	TransferEnv []TransferEnvVar `json:"transferEnv,omitempty"`
	// resourcesPolicy computes the container's resources from those of the Pod's own containers. It can't be used together with resources.
	// +optional
	ResourcesPolicy *ResourcesPolicy `json:"resourcesPolicy,omitempty"`
}

// PodInjectPolicyType is a place in a list of containers.
// +kubebuilder:validation:Enum=BeforeAppContainer;AfterAppContainer
type PodInjectPolicyType string

const (
	// BeforeAppContainerType puts the sidecar before the Pod's own containers.
	BeforeAppContainerType PodInjectPolicyType = "BeforeAppContainer"
	// AfterAppContainerType puts the sidecar after the Pod's own containers.
	AfterAppContainerType PodInjectPolicyType = "AfterAppContainer"
)

// SidecarContainerUpgradeType says how a new image reaches the container in existing Pods.
// +kubebuilder:validation:Enum=ColdUpgrade;HotUpgrade
type SidecarContainerUpgradeType string

const (
	// SidecarContainerColdUpgrade restarts the container with the new image.
	SidecarContainerColdUpgrade SidecarContainerUpgradeType = "ColdUpgrade"
	// SidecarContainerHotUpgrade starts the new image in a second container, which takes the work over before the first one goes idle.
	SidecarContainerHotUpgrade SidecarContainerUpgradeType = "HotUpgrade"
)

// SidecarContainerUpgradeStrategy says how a new image reaches the container in existing Pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.upgradeType) || self.upgradeType != 'HotUpgrade' || has(self.hotUpgradeEmptyImage) && self.hotUpgradeEmptyImage != \"\"",message="HotUpgrade needs an image for the idle one of the two containers",fieldPath=".hotUpgradeEmptyImage",reason="FieldValueRequired"
type SidecarContainerUpgradeStrategy struct {
	// upgradeType is ColdUpgrade, which restarts the container, or HotUpgrade, which adds the container twice, as <name>-1 and <name>-2,
	// and lets the new image take over from the old one. It can't be changed. Defaults to ColdUpgrade.
	// +optional
	UpgradeType SidecarContainerUpgradeType `json:"upgradeType,omitempty"`
	// hotUpgradeEmptyImage is the image of the idle one of the two containers. HotUpgrade needs it. Defaults to none.
	// +optional
	HotUpgradeEmptyImage string `json:"hotUpgradeEmptyImage,omitempty"`
}

// ShareVolumePolicyType turns the sharing of volumes on or off.
// +kubebuilder:validation:Enum=enabled;disabled
type ShareVolumePolicyType string

const (
	// ShareVolumePolicyEnabled shares volumes.
	ShareVolumePolicyEnabled ShareVolumePolicyType = "enabled"
	// ShareVolumePolicyDisabled does not.
	ShareVolumePolicyDisabled ShareVolumePolicyType = "disabled"
)

// ShareVolumePolicy says whether a sidecar shares the volumes, or the block devices, of the Pod's own containers.
type ShareVolumePolicy struct {
	// type is enabled or disabled. Defaults to disabled.
	// +optional
	Type ShareVolumePolicyType `json:"type,omitempty"`
}

// TransferEnvVar names environment variables to copy, and the container to copy them from.
type TransferEnvVar struct {
	// sourceContainerName is the container of the Pod to copy from.
	// +optional
	SourceContainerName string `json:"sourceContainerName,omitempty"`
	// sourceContainerNameFrom reads the name of that container from the Pod. It wins over sourceContainerName.
	// +optional
	SourceContainerNameFrom *SourceContainerNameSource `json:"sourceContainerNameFrom,omitempty"`
	// envName is the name of a variable.
	// +optional
	EnvName string `json:"envName,omitempty"`
	// envNames are names of further variables.
	// +optional
	// +listType=atomic
	EnvNames []string `json:"envNames,omitempty"`
}

// SourceContainerNameSource says where in a Pod the name of a container is to be read.
type SourceContainerNameSource struct {
	// fieldRef is a label or annotation of the Pod: metadata.labels['<key>'] or metadata.annotations['<key>'].
	// +optional
	FieldRef *corev1.ObjectFieldSelector `json:"fieldRef,omitempty"`
}

// TargetContainersModeType says how the resources of several containers become one number.
// +kubebuilder:validation:Enum=sum;max
type TargetContainersModeType string

const (
	// TargetContainersModeSum adds the resources up.
	TargetContainersModeSum TargetContainersModeType = "sum"
	// TargetContainersModeMax takes the largest.
	TargetContainersModeMax TargetContainersModeType = "max"
)

// ResourcesPolicy computes resources from those of the Pod's own containers, as the Pod is created.
//
// +kubebuilder:validation:XValidation:rule="has(self.resourcesExpr.limits) || has(self.resourcesExpr.requests)",message="limits or requests is needed",fieldPath=".resourcesExpr",reason="FieldValueRequired"
type ResourcesPolicy struct {
	// targetContainersMode is sum or max: how the values of the containers become one.
	TargetContainersMode TargetContainersModeType `json:"targetContainersMode"`
	// targetContainersNameRegex selects the containers by name: a regular expression of Go, which matches any part of a name. Defaults to
	// .*, all of them.
	// +optional
	TargetContainersNameRegex string `json:"targetContainersNameRegex,omitempty"`
	// resourcesExpr are the expressions.
	ResourcesExpr ResourcesExpr `json:"resourcesExpr"`
}

// ResourcesExpr are the expressions of limits and requests.
type ResourcesExpr struct {
	// limits are the expressions of the limits. Unset, there are no limits.
	// +optional
	Limits *ResourceExprLimits `json:"limits,omitempty"`
	// requests are the expressions of the requests. Unset, there are no requests.
	// +optional
	Requests *ResourceExprRequests `json:"requests,omitempty"`
}

// ResourceExprLimits are the expressions of limits.
type ResourceExprLimits struct {
	// cpu is an expression over cpu, the limit of the containers in cores, such as max(cpu*50%, 50m). Unset, or where a container has no
	// limit, there is none.
	// +optional
	CPU string `json:"cpu,omitempty"`
	// memory is an expression over memory, the limit of the containers in bytes, such as 200Mi. Unset, or where a container has no limit,
	// there is none.
	// +optional
	Memory string `json:"memory,omitempty"`
}

// ResourceExprRequests are the expressions of requests.
type ResourceExprRequests struct {
	// cpu is an expression over cpu, the request of the containers in cores. Unset, there is no request.
	// +optional
	CPU string `json:"cpu,omitempty"`
	// memory is an expression over memory, the request of the containers in bytes. Unset, there is no request.
	// +optional
	Memory string `json:"memory,omitempty"`
}
