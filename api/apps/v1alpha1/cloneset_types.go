package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// CloneSet keeps a number of alike Pods running and rolls new templates out over them in stages.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=clone
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The number of Pods wanted."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of Pods of the update revision."
// +kubebuilder:printcolumn:name="UPDATED_READY",type="integer",JSONPath=".status.updatedReadyReplicas",description="The number of Pods of the update revision that are ready."
// +kubebuilder:printcolumn:name="UPDATED_AVAILABLE",type="integer",JSONPath=".status.updatedAvailableReplicas",description="The number of Pods of the update revision that are available."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of Pods that are ready."
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.replicas",description="The number of Pods there are, surge included."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the CloneSet was created."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template."
// +kubebuilder:printcolumn:name="SELECTOR",type="string",priority=1,JSONPath=".status.labelSelector",description="The selector of the Pods."
type CloneSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec CloneSetSpec `json:"spec"`
	// status is what was last seen.
	// +optional
	Status v1beta1.CloneSetStatus `json:"status,omitempty"`
}

// CloneSetList is a list of CloneSets.
//
// +kubebuilder:object:root=true
type CloneSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CloneSet `json:"items"`
}

// CloneSetSpec is the wanted state of a CloneSet.
//
// +kubebuilder:validation:XValidation:rule="oldSelf.?replicas.orValue(1) > 0 && oldSelf.?updateStrategy.?type.orValue('None') != 'OnDelete' && [oldSelf.?updateStrategy.?maxUnavailable.orValue('20%')].exists(m, m == 0 || m == '0%') && [oldSelf.?updateStrategy.?maxSurge.orValue(0)].exists(m, m == 0 || m == '0%') || has(self.replicas) && self.replicas == 0 || !has(self.updateStrategy) || has(self.updateStrategy.type) && self.updateStrategy.type == 'OnDelete' || !has(self.updateStrategy.maxUnavailable) || !string(self.updateStrategy.maxUnavailable).matches('^0+([.]0+)?%?$') || has(self.updateStrategy.maxSurge) && !string(self.updateStrategy.maxSurge).matches('^0+([.]0+)?%?$')",message="maxUnavailable and maxSurge should not both be less than 1: an update could never start",fieldPath=".updateStrategy.maxUnavailable",optionalOldSelf=true
type CloneSetSpec struct {
	v1beta1.CloneSetBaseSpec `json:",inline"`

	// scaleStrategy says how Pods are added and which ones go first.
	// +optional
	ScaleStrategy CloneSetScaleStrategy `json:"scaleStrategy,omitempty"`

	// updateStrategy says how a new template is rolled out.
	// +optional
	UpdateStrategy CloneSetUpdateStrategy `json:"updateStrategy,omitempty"`
}

// CloneSetScaleStrategy says how Pods are added and which ones go first.
type CloneSetScaleStrategy struct {
	// podsToDelete names Pods that are deleted first when replicas shrinks. With unchanged replicas they are deleted and replaced. Names
	// of Pods that are gone are taken off the list. At most 5000; a longer list that was stored before can stay, and become shorter.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="size(self) <= 5000 || oldSelf.hasValue() && size(self) <= size(oldSelf.value())",message="must have at most 5000 items",optionalOldSelf=true
	PodsToDelete []string `json:"podsToDelete,omitempty"`

	// maxUnavailable limits, while Pods are being added, how many Pods may be unavailable at a time: a number, or a percentage of replicas,
	// rounded up. Unset means no limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(0|[1-9][0-9]{0,17})([.][0-9]{0,17}[1-9])?%$')",message="must be 0 or more, or a percentage such as \"20%\""
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// disablePVCReuse keeps a new Pod from taking over the claims, and so the name, of a Pod that was deleted from outside: claims go with
	// their Pod. Defaults to false.
	// +optional
	DisablePVCReuse bool `json:"disablePVCReuse,omitempty"`
}

// CloneSetUpdateStrategyType says how a Pod is updated.
// +kubebuilder:validation:Enum=ReCreate;InPlaceIfPossible;InPlaceOnly;OnDelete
type CloneSetUpdateStrategyType string

const (
	// RecreateCloneSetUpdateStrategyType deletes the Pod and creates a new one.
	RecreateCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "ReCreate"
	// InPlaceIfPossibleCloneSetUpdateStrategyType changes the Pod in place where the API server allows that change, else it recreates.
	InPlaceIfPossibleCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnlyCloneSetUpdateStrategyType changes the Pod in place; any other change of the template is refused.
	InPlaceOnlyCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "InPlaceOnly"
	// OnDeleteCloneSetUpdateStrategyType leaves Pods alone: one that the user deletes comes back at the update revision.
	OnDeleteCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "OnDelete"
)

// CloneSetUpdateStrategy sets the way, the stages, the limits and the order of an update.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'InPlaceOnly' || !has(self.maxSurge) || string(self.maxSurge).matches('^0+([.]0+)?%?$')",message="must be 0 with InPlaceOnly: surge Pods would have to be created and deleted",fieldPath=".maxSurge"
type CloneSetUpdateStrategy struct {
	// type says how a Pod is updated: ReCreate, InPlaceIfPossible, InPlaceOnly, or OnDelete, which waits for the user to delete it.
	// Defaults to ReCreate.
	// +optional
	Type CloneSetUpdateStrategyType `json:"type,omitempty"`

	// partition is the number of Pods kept at older revisions: a number, or a percentage of replicas, rounded up. Defaults to 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(0|[1-9][0-9]{0,17})([.][0-9]{0,17}[1-9])?%$')",message="must be 0 or more, or a percentage such as \"20%\""
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// maxUnavailable is the most Pods that may be unavailable because of an update: a number, or a percentage of replicas, rounded up
	// without maxSurge and down with it. It can't be 0 when maxSurge is 0. Defaults to 20%.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(0|[1-9][0-9]{0,17})([.][0-9]{0,17}[1-9])?%$')",message="must be 0 or more, or a percentage such as \"20%\""
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is the most Pods there may be above replicas during an update: a number, or a percentage of replicas, rounded up. It can't
	// be used with InPlaceOnly. Defaults to 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(0|[1-9][0-9]{0,17})([.][0-9]{0,17}[1-9])?%$')",message="must be 0 or more, or a percentage such as \"20%\""
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// paused stops updates; the number of Pods is still kept. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// priorityStrategy orders the Pods of an update by their labels.
	// +optional
	PriorityStrategy *pub.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`

	// scatterStrategy spreads Pods with certain labels over the whole update.
	// +optional
	ScatterStrategy pub.UpdateScatterStrategy `json:"scatterStrategy,omitempty"`

	// inPlaceUpdateStrategy sets the details of an in-place update.
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// InPlaceUpdateStrategy sets the details of an in-place update.
type InPlaceUpdateStrategy struct {
	// gracePeriodSeconds is the time between turning a Pod NotReady and changing it, in seconds, so that load balancers can take it out
	// first. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
}
