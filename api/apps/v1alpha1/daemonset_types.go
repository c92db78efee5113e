package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// DaemonSet keeps one Pod on every node that fits its template and rolls new templates out over the nodes in stages.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=daemon;ads
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desiredNumberScheduled",description="The number of nodes that should run a Pod."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.currentNumberScheduled",description="The number of those nodes that have a Pod."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.numberReady",description="The number of those nodes whose Pod is ready."
// +kubebuilder:printcolumn:name="UP-TO-DATE",type="integer",JSONPath=".status.updatedNumberScheduled",description="The number of those nodes whose Pod is at the update revision."
// +kubebuilder:printcolumn:name="AVAILABLE",type="integer",JSONPath=".status.numberAvailable",description="The number of those nodes whose Pod is available."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the DaemonSet was created."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template."
type DaemonSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec DaemonSetSpec `json:"spec"`
	// status is what was last seen.
	// +optional
	Status DaemonSetStatus `json:"status,omitempty"`
}

// DaemonSetList is a list of DaemonSets.
//
// +kubebuilder:object:root=true
type DaemonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DaemonSet `json:"items"`
}

// DaemonSetSpec is the wanted state of a DaemonSet.
type DaemonSetSpec struct {
	v1beta1.DaemonSetBaseSpec `json:",inline"`

	// updateStrategy says how a new template is rolled out.
	// +optional
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitempty"`
}

// DeprecatedSurgingRollingUpdateType is Standard with a maxSurge of 1 unless it says otherwise, as which it is stored.
const DeprecatedSurgingRollingUpdateType v1beta1.RollingUpdateType = "Surging"

// DaemonSetUpdateStrategy says how a new template is rolled out.
//
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'OnDelete' || !has(self.rollingUpdate) || has(self.rollingUpdate.rollingUpdateType) && self.rollingUpdate.rollingUpdateType == 'Surging' || !has(self.rollingUpdate.maxUnavailable) && !has(self.rollingUpdate.maxSurge) || has(self.rollingUpdate.maxUnavailable) && !string(self.rollingUpdate.maxUnavailable).matches('^0+%?$') || has(self.rollingUpdate.maxSurge) && !string(self.rollingUpdate.maxSurge).matches('^0+%?$')",message="cannot be 0 when maxSurge is 0",fieldPath=".rollingUpdate.maxUnavailable",reason="FieldValueRequired"
type DaemonSetUpdateStrategy struct {
	// type is RollingUpdate, which updates Pods in stages, or OnDelete, which waits for the user to delete them. Defaults to RollingUpdate.
	// +optional
	Type v1beta1.DaemonSetUpdateStrategyType `json:"type,omitempty"`
	// rollingUpdate sets the stages. It has no effect with OnDelete.
	// +optional
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty"`
}

// RollingUpdateDaemonSet sets the stages and the limits of an update.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdateType) || self.rollingUpdateType != 'InPlaceIfPossible' || !has(self.maxSurge) || string(self.maxSurge).matches('^0+%?$')",message="must be 0 for InPlaceIfPossible type",fieldPath=".maxSurge"
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdateType) || self.rollingUpdateType != 'Surging' || !has(self.maxUnavailable) || string(self.maxUnavailable).matches('^0+%?$')",message="must be 0 for Surging type",fieldPath=".maxUnavailable",reason="FieldValueRequired"
type RollingUpdateDaemonSet struct {
	// rollingUpdateType says how the Pod of one node is updated: Standard or InPlaceIfPossible. Defaults to Standard. Surging stands
	// for Standard with a maxSurge of 1.
	// +optional
	// +kubebuilder:validation:Enum=Standard;Surging;InPlaceIfPossible
	Type                               v1beta1.RollingUpdateType `json:"rollingUpdateType,omitempty"`
	v1beta1.RollingUpdateDaemonSetBase `json:",inline"`
}

// DaemonSetStatus is what was last seen of a DaemonSet.
type DaemonSetStatus struct {
	v1beta1.DaemonSetBaseStatus `json:",inline"`

	// daemonSetHash is the short hash of the revision of the present template: the value of the label controller-revision-hash of its Pods.
	// +optional
	DaemonSetHash string `json:"daemonSetHash,omitempty"`
}
