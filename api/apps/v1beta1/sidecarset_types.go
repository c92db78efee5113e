package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

// SidecarSet adds containers to Pods as they are created, whatever creates them, and later updates the images of those containers in place,
// without a restart of the Pods' own.
//
// Whoever may write SidecarSets can run any container in any namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
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
	Status SidecarSetStatus `json:"status,omitempty"`
}

// SidecarSetList is a list of SidecarSets.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SidecarSet `json:"items"`
}

// SidecarSetBaseSpec is what both versions say in spec.
//
// +kubebuilder:validation:XValidation:rule="has(self.containers) && size(self.containers) > 0 || has(self.initContainers) && size(self.initContainers) > 0",message="containers or initContainers must have an item",fieldPath=".containers",reason="FieldValueRequired"
type SidecarSetBaseSpec struct {
	// selector selects by label the Pods that get the sidecars and are updated later. It must not be empty. Pods that exist when it starts
	// to select them get no sidecars; Pods that it stops selecting keep theirs.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="empty selector is not valid for sidecarset."
	Selector *metav1.LabelSelector `json:"selector"`
	// namespaceSelector selects namespaces by their labels; it must not be empty. Unset, the Pods of all namespaces are selected.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="must not be empty: leave it out to select all namespaces"
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// initContainers are added to the Pods' init containers, when a Pod is created. Those with restartPolicy Always run beside the Pods'
	// containers for the whole of a Pod's life. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="size(self) <= 100 || oldSelf.hasValue() && size(self) <= size(oldSelf.value())",message="must have at most 100 items",optionalOldSelf=true
	InitContainers []SidecarContainer `json:"initContainers,omitempty"`
	// containers are the sidecars. None can be added once the SidecarSet exists. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="size(self) <= 100 || oldSelf.hasValue() && size(self) <= size(oldSelf.value())",message="must have at most 100 items",optionalOldSelf=true
	Containers []SidecarContainer `json:"containers,omitempty"`
	// volumes are those that the sidecars mount. Where a Pod has a volume of the same name, the Pod's own is mounted.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// imagePullSecrets are added to those of the Pods. The Secrets must exist in the namespaces of the Pods. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// patchPodMetadata are annotations to write into the Pods. The administrator of the cluster says which ones are allowed. At most
	// 64 groups.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="size(self) <= 64 || oldSelf.hasValue() && size(self) <= size(oldSelf.value())",message="must have at most 64 items",optionalOldSelf=true
	PatchPodMetadata []SidecarSetPatchPodMetadata `json:"patchPodMetadata,omitempty"`
	// injectionStrategy says what new Pods get.
	// +optional
	InjectionStrategy SidecarSetInjectionStrategy `json:"injectionStrategy,omitempty"`
	// updateStrategy says how new images reach the sidecars of existing Pods.
	// +optional
	UpdateStrategy SidecarSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// revisionHistoryLimit is the number of revisions kept, those in use among them; values below 1 count as 1. A revision that a Pod uses
	// is kept beyond it. Defaults to 10.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// SidecarSetSpec is the wanted state of a SidecarSet.
type SidecarSetSpec struct {
	SidecarSetBaseSpec `json:",inline"`

	// customVersion names the present revision, so that injectionStrategy can ask for it by that name later. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	CustomVersion string `json:"customVersion,omitempty"`
}

// SidecarSetPatchPolicy says what becomes of an annotation that a Pod has already.
// +kubebuilder:validation:Enum=Retain;Overwrite;MergePatchJson
type SidecarSetPatchPolicy string

const (
	// SidecarSetRetainPatchPolicy leaves the Pod's value alone.
	SidecarSetRetainPatchPolicy SidecarSetPatchPolicy = "Retain"
	// SidecarSetOverwritePatchPolicy replaces the Pod's value.
	SidecarSetOverwritePatchPolicy SidecarSetPatchPolicy = "Overwrite"
	// SidecarSetMergePatchJSONPatchPolicy applies the value as a JSON merge patch (RFC 7386) to the Pod's value.
	SidecarSetMergePatchJSONPatchPolicy SidecarSetPatchPolicy = "MergePatchJson"
)

// SidecarSetPatchPodMetadata is a group of annotations and the way they are written.
//
// +kubebuilder:validation:XValidation:rule="has(self.annotations) && size(self.annotations) > 0",message="name the annotations to write",fieldPath=".annotations",reason="FieldValueRequired"
type SidecarSetPatchPodMetadata struct {
	// annotations are the keys and values to write. There must be one or more.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// patchPolicy says what becomes of a value that a Pod has already: Retain, Overwrite or MergePatchJson. Defaults to Retain.
	// +optional
	PatchPolicy SidecarSetPatchPolicy `json:"patchPolicy,omitempty"`
}

// SidecarSetInjectionStrategy says what new Pods get.
type SidecarSetInjectionStrategy struct {
	// paused lets new Pods be created without the sidecars; existing ones are still updated. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// revision asks for an older revision. Unset, new Pods get the sidecars as they are in this spec.
	// +optional
	Revision *SidecarSetInjectRevision `json:"revision,omitempty"`
}

// SidecarSetInjectRevisionPolicy says which new Pods get the revision that is asked for.
// +kubebuilder:validation:Enum=Always;Partial
type SidecarSetInjectRevisionPolicy string

const (
	// AlwaysSidecarSetInjectRevisionPolicy gives the revision to all new Pods.
	AlwaysSidecarSetInjectRevisionPolicy SidecarSetInjectRevisionPolicy = "Always"
	// PartialSidecarSetInjectRevisionPolicy gives the revision to as many new Pods as the partition of the updateStrategy keeps old, and to
	// those that its selector leaves out; the others get the present spec.
	PartialSidecarSetInjectRevisionPolicy SidecarSetInjectRevisionPolicy = "Partial"
)

// SidecarSetInjectRevision asks for a revision by one of its names.
//
// +kubebuilder:validation:XValidation:rule="has(self.revisionName) && self.revisionName != \"\" || has(self.customVersion) && self.customVersion != \"\"",message="revisionName or customVersion is needed",reason="FieldValueRequired"
type SidecarSetInjectRevision struct {
	// revisionName is the name of a ControllerRevision of this SidecarSet. It wins over customVersion.
	// +optional
	RevisionName *string `json:"revisionName,omitempty"`
	// customVersion asks for the newest revision that had this customVersion.
	// +optional
	CustomVersion *string `json:"customVersion,omitempty"`
	// policy says which new Pods get the revision: Always, which is all, or Partial. Defaults to Always.
	// +optional
	// +kubebuilder:default=Always
	Policy SidecarSetInjectRevisionPolicy `json:"policy,omitempty"`
}

// SidecarSetUpdateStrategyType says whether existing Pods are updated.
// +kubebuilder:validation:Enum=RollingUpdate;NotUpdate
type SidecarSetUpdateStrategyType string

const (
	// RollingUpdateSidecarSetStrategyType brings new images to existing Pods, in stages.
	RollingUpdateSidecarSetStrategyType SidecarSetUpdateStrategyType = "RollingUpdate"
	// NotUpdateSidecarSetStrategyType leaves existing Pods alone.
	NotUpdateSidecarSetStrategyType SidecarSetUpdateStrategyType = "NotUpdate"
)

// SidecarSetUpdateStrategy says how new images reach the sidecars of existing Pods.
//
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'NotUpdate' || !has(self.selector) || !has(self.partition) || string(self.partition).matches('^0+%?$')",message="must be 0 together with a selector",fieldPath=".partition"
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'NotUpdate' || !has(self.selector) || has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0 || has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0",message="must not be empty: leave it out to update all Pods",fieldPath=".selector"
type SidecarSetUpdateStrategy struct {
	// type is RollingUpdate, which updates the images of existing Pods in stages, or NotUpdate, which leaves existing Pods alone. Defaults
	// to RollingUpdate.
	// +optional
	Type SidecarSetUpdateStrategyType `json:"type,omitempty"`
	// paused stops updates of existing Pods. A hot upgrade that has begun in a Pod is finished. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// selector selects by label the only Pods that are updated; it can't be used together with a partition. Unset, all are.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// partition is the number of Pods whose sidecars stay as they are: a number, or a percentage of the Pods that hold the sidecars,
	// rounded up; a percentage below 100% updates one Pod at least. Defaults to 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be 0 or more, or a percentage of up to 100%"
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// maxUnavailable is the most Pods that may be unavailable because of an update: a number, or a percentage of the Pods that hold the
	// sidecars, rounded up. With 0 only Pods that are not ready are updated. Defaults to 1.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be 0 or more, or a percentage of up to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// priorityStrategy orders the Pods of an update by their labels.
	// +optional
	PriorityStrategy *pub.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
	// scatterStrategy spreads Pods with certain labels over the whole update. The value * stands for every value that the Pods have.
	// +optional
	ScatterStrategy pub.UpdateScatterStrategy `json:"scatterStrategy,omitempty"`
}

// SidecarSetStatus is what was last seen of a SidecarSet.
type SidecarSetStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// matchedPods is the number of Pods that are selected, active and hold all the sidecars.
	// +optional
	MatchedPods int32 `json:"matchedPods"`
	// updatedPods is the number of matched Pods whose sidecars are those of the present spec.
	// +optional
	UpdatedPods int32 `json:"updatedPods"`
	// readyPods is the number of matched Pods that are ready and in which no update of a sidecar is on its way.
	// +optional
	ReadyPods int32 `json:"readyPods"`
	// updatedReadyPods is the number of matched Pods that are both updated and ready.
	// +optional
	UpdatedReadyPods int32 `json:"updatedReadyPods"`
	// notUpgradablePods is the number of matched Pods that keep older sidecars until they are created anew, because more than images
	// differ.
	// +optional
	NotUpgradablePods int32 `json:"notUpgradablePods"`
	// latestRevision is the name of the ControllerRevision of the present spec.
	// +optional
	LatestRevision string `json:"latestRevision,omitempty"`
	// collisionCount goes into the hash of a revision, so that a taken name can be avoided.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// conditions tell how the update of existing Pods stands.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SidecarSetConditionProgressing is the condition of a SidecarSet that is True while Pods are being updated, and says why not otherwise.
const SidecarSetConditionProgressing = "Progressing"

// Reasons of the condition Progressing of a SidecarSet.
const (
	// SidecarSetUpdated means that all matched Pods are updated and ready.
	SidecarSetUpdated = "Updated"
	// SidecarSetUpdating means that Pods are being updated, or updated Pods are getting ready.
	SidecarSetUpdating = "Updating"
	// SidecarSetNotUpdate means that the strategy leaves existing Pods alone.
	SidecarSetNotUpdate = "NotUpdate"
	// SidecarSetPaused means that the update is paused.
	SidecarSetPaused = "Paused"
	// SidecarSetPartitionReached means that all but those that partition or selector keep are updated and ready.
	SidecarSetPartitionReached = "PartitionReached"
	// SidecarSetImmutableFieldChanged means that Pods have to be created anew to get the present sidecars.
	SidecarSetImmutableFieldChanged = "ImmutableFieldChanged"
	// SidecarSetBudgetExhausted means that maxUnavailable is used up by updated Pods that are not ready.
	SidecarSetBudgetExhausted = "BudgetExhausted"
	// SidecarSetInvalid means that the spec can't be followed.
	SidecarSetInvalid = "Invalid"
)
