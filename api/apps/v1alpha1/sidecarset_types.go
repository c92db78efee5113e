package v1alpha1

import (
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
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-zA-Z0-9-]{1,63}$')",optionalOldSelf=true,message="metadata.name must be at most 63 letters, digits and dashes: it becomes a part of labels"
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
type SidecarSetSpec struct {
	v1beta1.SidecarSetBaseSpec `json:",inline"`

	// namespace is the only namespace whose Pods are selected. Together with namespaceSelector both must select. Defaults to none: Pods of
	// all namespaces are selected.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// strategy is the first spelling of updateStrategy. Deprecated: use updateStrategy.maxUnavailable. A value that is written here is
	// copied there, unless that field is written too.
	// +optional
	Strategy *SidecarSetDeprecatedStrategy `json:"strategy,omitempty"`
	// paused is the first spelling of updateStrategy.paused. Deprecated: use that. A value that is written here is copied there, unless
	// that field is written too.
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
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be 0 or more, or a percentage of up to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}
