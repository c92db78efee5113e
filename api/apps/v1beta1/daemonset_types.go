package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

// DaemonSet keeps one Pod on every node that fits its template and rolls new templates out over the nodes in stages.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=daemon;ads
// +kubebuilder:storageversion
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

// DaemonSetBaseSpec is what both versions say in spec.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="is immutable: delete the DaemonSet with --cascade=orphan and create it anew to select other Pods",fieldPath=".selector",reason="FieldValueForbidden"
type DaemonSetBaseSpec struct {
	// selector selects the Pods of this DaemonSet by label. It must match the labels of the template, must not be empty, and can't be
	// changed.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="empty selector is invalid for daemonset"
	Selector *metav1.LabelSelector `json:"selector"`
	// template describes the Pods, and by its nodeSelector, node affinity and tolerations the nodes that get one. It is stored as it was
	// written. Its restartPolicy can only be Always; activeDeadlineSeconds is not allowed.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template"`
	// minReadySeconds is how long a Pod must have been ready to count as available, in seconds. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// burstReplicas is the most Pods that are created at once, and the most that are deleted or updated in place at once: a number, or a
	// percentage of the nodes that should run a Pod, rounded down and at least 1. Defaults to 250.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : self.matches('^[1-9][0-9]{0,8}%$')",message="must be greater than 0, or a percentage such as \"20%\""
	BurstReplicas *intstr.IntOrString `json:"burstReplicas,omitempty"`
	// revisionHistoryLimit is the number of revisions kept that no Pod uses any more, for rollback. Defaults to 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// lifecycle lists the hooks at which Pods wait for a controller of the user's: preDelete and inPlaceUpdate. A preNormal hook has no
	// effect.
	// +optional
	Lifecycle *pub.Lifecycle `json:"lifecycle,omitempty"`
}

// DaemonSetSpec is the wanted state of a DaemonSet.
type DaemonSetSpec struct {
	DaemonSetBaseSpec `json:",inline"`

	// updateStrategy says how a new template is rolled out.
	// +optional
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// scaleStrategy says how the first Pods of nodes are created.
	// +optional
	ScaleStrategy *DaemonSetScaleStrategy `json:"scaleStrategy,omitempty"`
}

// DaemonSetScaleStrategy says how the first Pods of nodes are created.
type DaemonSetScaleStrategy struct {
	// partitionedScaling holds the first Pods of as many nodes back as the partition of a RollingUpdate says: nodes get their first Pod in
	// ascending order of their names. Defaults to false: every node gets its Pod at once.
	// +optional
	PartitionedScaling bool `json:"partitionedScaling,omitempty"`
}

// DaemonSetUpdateStrategyType says who starts the update of a Pod.
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type DaemonSetUpdateStrategyType string

const (
	// RollingUpdateDaemonSetStrategyType updates Pods by itself, in stages.
	RollingUpdateDaemonSetStrategyType DaemonSetUpdateStrategyType = "RollingUpdate"
	// OnDeleteDaemonSetStrategyType leaves Pods alone: one that the user deletes comes back at the update revision.
	OnDeleteDaemonSetStrategyType DaemonSetUpdateStrategyType = "OnDelete"
)

// RollingUpdateType says how the Pod of one node is updated.
type RollingUpdateType string

const (
	// StandardRollingUpdateType replaces the Pod: the old one goes first, or with maxSurge the new one comes first.
	StandardRollingUpdateType RollingUpdateType = "Standard"
	// InPlaceRollingUpdateType changes the Pod in place where the API server allows that change, else it replaces it.
	InPlaceRollingUpdateType RollingUpdateType = "InPlaceIfPossible"
)

// DaemonSetUpdateStrategy says how a new template is rolled out.
//
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'OnDelete' || !has(self.rollingUpdate) || !has(self.rollingUpdate.maxUnavailable) && !has(self.rollingUpdate.maxSurge) || has(self.rollingUpdate.maxUnavailable) && !string(self.rollingUpdate.maxUnavailable).matches('^0+%?$') || has(self.rollingUpdate.maxSurge) && !string(self.rollingUpdate.maxSurge).matches('^0+%?$')",message="cannot be 0 when maxSurge is 0",fieldPath=".rollingUpdate.maxUnavailable",reason="FieldValueRequired"
type DaemonSetUpdateStrategy struct {
	// type is RollingUpdate, which updates Pods in stages, or OnDelete, which waits for the user to delete them. Defaults to RollingUpdate.
	// +optional
	Type DaemonSetUpdateStrategyType `json:"type,omitempty"`
	// rollingUpdate sets the stages. It has no effect with OnDelete.
	// +optional
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty"`
}

// RollingUpdateDaemonSetBase is what both versions say of the stages and the limits of an update.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxSurge) || string(self.maxSurge).matches('^0+%?$') || !has(self.maxUnavailable) || string(self.maxUnavailable).matches('^0+%?$')",message="may not be set when maxUnavailable is non-zero",fieldPath=".maxSurge"
type RollingUpdateDaemonSetBase struct {
	// maxUnavailable is the most nodes without an available Pod because of an update: a number, or a percentage of the nodes that should
	// run a Pod, rounded up. Exactly one of maxUnavailable and maxSurge is not 0. Defaults to 1 where maxSurge is not given either.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be 0 or more, or a percentage of up to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// maxSurge is the most nodes on which a new Pod may run beside the old one during an update: a number, or a percentage of the nodes
	// that should run a Pod, rounded up. It must be 0 with InPlaceIfPossible. Defaults to 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be 0 or more, or a percentage of up to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// selector selects, by label, the nodes that are updated; it must not be empty. Unset, all are. A node that it stops selecting keeps
	// what it has.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty selector matches every node: leave it out to update all"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// partition is the number of nodes kept at older revisions: a number, or a percentage of the nodes that should run a Pod, rounded down.
	// Nodes are updated in descending order of their names. Defaults to 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be 0 or more, or a percentage of up to 100%"
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// paused stops updates; nodes still get and keep their Pod. Defaults to false.
	// +optional
	Paused *bool `json:"paused,omitempty"`
	// inPlaceUpdateStrategy sets the details of an in-place update.
	// +optional
	InPlaceUpdateStrategy *DaemonSetInPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// RollingUpdateDaemonSet sets the stages and the limits of an update.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdateType) || self.rollingUpdateType != 'InPlaceIfPossible' || !has(self.maxSurge) || string(self.maxSurge).matches('^0+%?$')",message="must be 0 for InPlaceIfPossible type",fieldPath=".maxSurge"
type RollingUpdateDaemonSet struct {
	// rollingUpdateType says how the Pod of one node is updated: Standard or InPlaceIfPossible. Defaults to Standard.
	// +optional
	// +kubebuilder:validation:Enum=Standard;InPlaceIfPossible
	Type                       RollingUpdateType `json:"rollingUpdateType,omitempty"`
	RollingUpdateDaemonSetBase `json:",inline"`
}

// DaemonSetInPlaceUpdateStrategy sets the details of an in-place update.
type DaemonSetInPlaceUpdateStrategy struct {
	// gracePeriodSeconds is the time between turning a Pod NotReady and changing it, in seconds, so that load balancers can take it out
	// first. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
}

// DaemonSetBaseStatus is what both versions say in status.
type DaemonSetBaseStatus struct {
	// currentNumberScheduled is the number of nodes that should run a Pod and have one.
	// +optional
	CurrentNumberScheduled int32 `json:"currentNumberScheduled"`
	// numberMisscheduled is the number of nodes that should not run a Pod and have one.
	// +optional
	NumberMisscheduled int32 `json:"numberMisscheduled"`
	// desiredNumberScheduled is the number of nodes that should run a Pod.
	// +optional
	DesiredNumberScheduled int32 `json:"desiredNumberScheduled"`
	// numberReady is the number of nodes that should run a Pod and whose first Pod is ready.
	// +optional
	NumberReady int32 `json:"numberReady"`
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// updatedNumberScheduled is the number of nodes that should run a Pod and whose first Pod is at the update revision.
	// +optional
	UpdatedNumberScheduled int32 `json:"updatedNumberScheduled"`
	// numberAvailable is the number of nodes that should run a Pod and whose first Pod has been ready for minReadySeconds.
	// +optional
	NumberAvailable int32 `json:"numberAvailable"`
	// numberUnavailable is the number of nodes that should run a Pod and have none that is available.
	// +optional
	NumberUnavailable int32 `json:"numberUnavailable"`
	// collisionCount counts the revisions whose name another template had; the name of the next revision depends on it.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// conditions tell of what failed: FailedScale when a Pod could not be created or deleted, FailedUpdate when one could not be updated.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []appsv1.DaemonSetCondition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// DaemonSetStatus is what was last seen of a DaemonSet.
type DaemonSetStatus struct {
	DaemonSetBaseStatus `json:",inline"`

	// updateRevision is the short hash of the revision of the present template: the value of the label controller-revision-hash of its
	// Pods.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
}

// Conditions of a DaemonSet.
const (
	// DaemonSetConditionFailedScale is True when the last pass could not create or delete a Pod.
	DaemonSetConditionFailedScale appsv1.DaemonSetConditionType = "FailedScale"
	// DaemonSetConditionFailedUpdate is True when the last pass could not update a Pod.
	DaemonSetConditionFailedUpdate appsv1.DaemonSetConditionType = "FailedUpdate"
	// DaemonSetConditionWaiting is True when nothing has happened to the Pods for ten seconds and one is out of service, or a budget lets
	// none go. The message names the Pod and the reason: PodBroken, PodNotReady, PodNotAvailable, PodDeleting, LifecycleHook,
	// PodUnavailableBudget.
	DaemonSetConditionWaiting appsv1.DaemonSetConditionType = "Waiting"
)
