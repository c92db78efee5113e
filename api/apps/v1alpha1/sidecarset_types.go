package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// SidecarSet adds containers to Pods as they are created, whatever creates them, and later updates the images of those containers in place,
// without a restart of the Pods' own.
//
// Whoever may write SidecarSets can run any container in any namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="MATCHED",type="integer",JSONPath=".status.matchedPods",description="The number of Pods that hold the sidecars."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedPods",description="The number of those whose sidecars are the present ones."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyPods",description="The number of those that are ready, with no update of a sidecar on its way."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the SidecarSet was created."
// +kubebuilder:printcolumn:name="READY_UPDATED",type="integer",priority=1,JSONPath=".status.updatedReadyPods",description="The number of Pods that are both updated and ready."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.containers[*].image",description="The images of the sidecars."
type SidecarSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec SidecarSetSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status v1beta1.SidecarSetStatus `json:"status,omitempty"`
}

// SidecarSetList is a list of SidecarSets.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SidecarSet `json:"items"`
}

// SidecarSetSpec is the wanted state of a SidecarSet.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0 || has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0",message="empty selector is not valid for sidecarset.",fieldPath=".selector"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || has(self.namespaceSelector.matchLabels) && size(self.namespaceSelector.matchLabels) > 0 || has(self.namespaceSelector.matchExpressions) && size(self.namespaceSelector.matchExpressions) > 0",message="must not be empty: leave it out to select all namespaces",fieldPath=".namespaceSelector"
// +kubebuilder:validation:XValidation:rule="has(self.containers) && size(self.containers) > 0 || has(self.initContainers) && size(self.initContainers) > 0",message="containers or initContainers must have an item",fieldPath=".containers",reason="FieldValueRequired"
type SidecarSetSpec struct {
	// selector selects by label the Pods that get the sidecars and are updated later. It must not be empty. Pods that exist when it starts to
	// select them get no sidecars; Pods that it stops selecting keep theirs.
	Selector *metav1.LabelSelector `json:"selector"`
	// namespace is the only namespace whose Pods are selected. Together with namespaceSelector both must select. Defaults to none: Pods of all
	// namespaces are selected.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// namespaceSelector selects namespaces by their labels; it must not be empty. Unset, the Pods of all namespaces are selected.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// initContainers are added to the Pods' init containers, when a Pod is created. Those with restartPolicy Always run beside the Pods'
	// containers for the whole of a Pod's life.
	// +optional
	// +listType=atomic
	InitContainers []v1beta1.SidecarContainer `json:"initContainers,omitempty"`
	// containers are the sidecars. None can be added once the SidecarSet exists.
	// +optional
	// +listType=atomic
	Containers []v1beta1.SidecarContainer `json:"containers,omitempty"`
	// volumes are those that the sidecars mount. Where a Pod has a volume of the same name, the Pod's own is mounted.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// imagePullSecrets are added to those of the Pods. The Secrets must exist in the namespaces of the Pods.
	// +optional
	// +listType=atomic
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// patchPodMetadata are annotations to write into the Pods. The administrator of the cluster says which ones are allowed.
	// +optional
	// +listType=atomic
	PatchPodMetadata []v1beta1.SidecarSetPatchPodMetadata `json:"patchPodMetadata,omitempty"`
	// injectionStrategy says what new Pods get.
	// +optional
	InjectionStrategy v1beta1.SidecarSetInjectionStrategy `json:"injectionStrategy,omitempty"`
	// updateStrategy says how new images reach the sidecars of existing Pods.
	// +optional
	UpdateStrategy v1beta1.SidecarSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// revisionHistoryLimit is the number of revisions kept, those in use among them; values below 1 count as 1. A revision that a Pod uses is
	// kept beyond it. Defaults to 10.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// strategy is the first spelling of updateStrategy. Deprecated: use updateStrategy.maxUnavailable. A value that is written here is copied
	// there, unless that field is written too.
	// +optional
	Strategy *SidecarSetDeprecatedStrategy `json:"strategy,omitempty"`
	// paused is the first spelling of updateStrategy.paused. Deprecated: use that. A value that is written here is copied there, unless that
	// field is written too.
	// +optional
	Paused *bool `json:"paused,omitempty"`
}

// SidecarSetDeprecatedStrategy is the first spelling of the update strategy.
type SidecarSetDeprecatedStrategy struct {
	// rollingUpdate sets the limit of an update. Deprecated: use updateStrategy.
	// +optional
	RollingUpdate *SidecarSetDeprecatedRollingUpdate `json:"rollingUpdate,omitempty"`
}

// SidecarSetDeprecatedRollingUpdate is the first spelling of the limit of an update.
type SidecarSetDeprecatedRollingUpdate struct {
	// maxUnavailable is the most Pods that may be unavailable because of an update: a number, or a percentage of the Pods that hold the
	// sidecars, rounded up. Deprecated: use updateStrategy.maxUnavailable. Defaults to none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^0*(100|[0-9]{1,2})%$')",message="must be 0 or more, or a percentage of up to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}
