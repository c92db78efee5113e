package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

// StatefulSet keeps Pods running that each have a number, and with it a name, an address and claims that outlive the Pod. It takes every
// field of the StatefulSet of apps/v1, and rolls new templates out in parallel, in place, in the order that its user wants.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=sts;asts
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The number of Pods wanted."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="The number of Pods there are."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of Pods of the update revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of Pods that are ready."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the StatefulSet was created."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template."
//
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",message="metadata.name must have at most 63 characters and no dots: it is a part of the host names of Pods",optionalOldSelf=true
type StatefulSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec StatefulSetSpec `json:"spec"`
	// status is what was last seen.
	// +optional
	Status StatefulSetStatus `json:"status,omitempty"`
}

// StatefulSetList is a list of StatefulSets.
//
// +kubebuilder:object:root=true
type StatefulSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulSet `json:"items"`
}

// StatefulSetSpec is the wanted state of a StatefulSet.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="is immutable: delete the StatefulSet with --cascade=orphan and create it anew to select other Pods",fieldPath=".selector",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceName) ? self.serviceName : \"\") == (has(oldSelf.serviceName) ? oldSelf.serviceName : \"\")",message="is immutable: delete the StatefulSet with --cascade=orphan and create it anew under another Service",fieldPath=".serviceName",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="(has(self.podManagementPolicy) ? self.podManagementPolicy : 'OrderedReady') == (has(oldSelf.podManagementPolicy) ? oldSelf.podManagementPolicy : 'OrderedReady')",message="is immutable: delete the StatefulSet with --cascade=orphan and create it anew with another policy",fieldPath=".podManagementPolicy",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="oldSelf.?progressDeadlineSeconds == self.?progressDeadlineSeconds && oldSelf.?minReadySeconds == self.?minReadySeconds && oldSelf.?updateStrategy.?rollingUpdate.?minReadySeconds == self.?updateStrategy.?rollingUpdate.?minReadySeconds || !has(self.progressDeadlineSeconds) || self.progressDeadlineSeconds > (self.?updateStrategy.?rollingUpdate.?minReadySeconds.orValue(0) > 0 ? self.?updateStrategy.?rollingUpdate.?minReadySeconds.orValue(0) : self.?minReadySeconds.orValue(0)) || self.progressDeadlineSeconds == 2147483647",message="must be greater than minReadySeconds",fieldPath=".progressDeadlineSeconds",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="oldSelf.?scaleStrategy.?maxUnavailable.orValue(1) != 1 || has(self.podManagementPolicy) && self.podManagementPolicy == 'Parallel' || !has(self.scaleStrategy) || !has(self.scaleStrategy.maxUnavailable) || self.scaleStrategy.maxUnavailable == 1",message="can only work with Parallel PodManagementPolicyType",fieldPath=".scaleStrategy.maxUnavailable",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="oldSelf.?updateStrategy.?rollingUpdate.?unorderedUpdate.hasValue() || has(self.podManagementPolicy) && self.podManagementPolicy == 'Parallel' || !self.?updateStrategy.?rollingUpdate.?unorderedUpdate.hasValue()",message="unorderedUpdate can only work with Parallel PodManagementPolicyType",fieldPath=".updateStrategy.rollingUpdate.unorderedUpdate",reason="FieldValueRequired",optionalOldSelf=true
type StatefulSetSpec struct {
	// replicas is the number of Pods wanted. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Replicas *int32 `json:"replicas,omitempty"`

	// selector selects the Pods of this StatefulSet by label. It must match the labels of the template, must not be empty, and can't be
	// changed.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="empty selector is invalid for statefulset"
	Selector *metav1.LabelSelector `json:"selector"`

	// template describes the Pods. Its restartPolicy can only be Always; activeDeadlineSeconds is not allowed. The Pod with the ordinal 3
	// of a StatefulSet web is named web-3, and has that name as its hostname.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template"`

	// volumeClaimTemplates are claims that every Pod gets of its own, named by template, StatefulSet and ordinal, such as data-web-3. A
	// volume of the template with the name of a claim template is replaced by the claim. A claim that exists already is used as it is. A
	// Pod whose volumes do not match the claim templates any more is recreated by the next update.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// volumeClaimUpdateStrategy says what a larger size in a claim template does to the claims there are. It takes effect with the feature
	// gate StatefulSetAutoResizePVCGate.
	// +optional
	VolumeClaimUpdateStrategy VolumeClaimUpdateStrategy `json:"volumeClaimUpdateStrategy,omitempty"`

	// serviceName is the headless Service that gives each Pod its DNS name: Pod, Service and namespace, such as web-3.web.default.svc. The
	// Service is not created here. It can't be changed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	ServiceName string `json:"serviceName,omitempty"`

	// podManagementPolicy is OrderedReady, which creates and deletes one Pod at a time and waits until it is available, or Parallel, which
	// does not wait. It can't be changed. Defaults to OrderedReady.
	// +optional
	// +kubebuilder:validation:Enum=OrderedReady;Parallel
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`

	// updateStrategy says how a new template is rolled out.
	// +optional
	UpdateStrategy StatefulSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// revisionHistoryLimit is the number of revisions kept that no Pod uses any more, for rollback. Defaults to 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// minReadySeconds is how long a Pod must have been ready to count as available, in seconds. It is the spelling of apps/v1; a value of
	// updateStrategy.rollingUpdate.minReadySeconds above 0 counts before it. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// reserveOrdinals are ordinals that no Pod gets: numbers, and ranges such as "3-5", whose ends belong to them. The Pods are numbered on
	// beyond them, so that reserving the ordinal of a Pod that is there moves it to the next free one; together with one replica less it
	// removes just that Pod. At most 20000 items; a longer list that was stored before can stay, and become shorter.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="size(self) <= 20000 || oldSelf.hasValue() && size(self) <= size(oldSelf.value())",message="must have at most 20000 items: reserve ranges such as \"3-5\"",optionalOldSelf=true
	ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals,omitempty"`

	// lifecycle lists the hooks at which Pods wait for a controller of the user's.
	// +optional
	Lifecycle *pub.Lifecycle `json:"lifecycle,omitempty"`

	// scaleStrategy says how Pods are added.
	// +optional
	ScaleStrategy *StatefulSetScaleStrategy `json:"scaleStrategy,omitempty"`

	// persistentVolumeClaimRetentionPolicy says when claims are deleted. Defaults to never.
	// +optional
	PersistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// ordinals says where the numbering begins.
	// +optional
	Ordinals *StatefulSetOrdinals `json:"ordinals,omitempty"`

	// progressDeadlineSeconds is how long a rollout may make no progress, in seconds, before the condition Progressing turns False with the
	// reason ProgressDeadlineExceeded. The rollout goes on all the same. The condition stays False until the rollout is complete, or as
	// complete as the partition allows, is paused, or has another template. Unset, or 2147483647, means that no progress is reported. It
	// must be greater than the minReadySeconds in force.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// StatefulSetOrdinals says where the numbering of Pods begins.
type StatefulSetOrdinals struct {
	// start is the lowest ordinal. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Start int32 `json:"start,omitempty"`
}

// StatefulSetScaleStrategy says how Pods are added.
type StatefulSetScaleStrategy struct {
	// maxUnavailable limits, while Pods are being added, how many Pods may be unavailable at a time: a number, or a percentage of replicas,
	// rounded down but at least 1. Unset means no limit. OrderedReady takes only the number 1, which it keeps in any case.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9]?[0-9]([.][0-9]{0,17}[1-9])?)%$') && !self.matches('^0+([.]0+)?%$')",message="must be 1 or more, or a percentage above 0% and up to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// PersistentVolumeClaimRetentionPolicyType says what becomes of a claim that is not needed any more.
// +kubebuilder:validation:Enum=Retain;Delete
type PersistentVolumeClaimRetentionPolicyType string

const (
	// RetainPersistentVolumeClaimRetentionPolicyType keeps the claim.
	RetainPersistentVolumeClaimRetentionPolicyType PersistentVolumeClaimRetentionPolicyType = "Retain"
	// DeletePersistentVolumeClaimRetentionPolicyType deletes the claim.
	DeletePersistentVolumeClaimRetentionPolicyType PersistentVolumeClaimRetentionPolicyType = "Delete"
)

// StatefulSetPersistentVolumeClaimRetentionPolicy says when the claims made from claim templates are deleted. The update or the eviction of
// a Pod never deletes its claims.
type StatefulSetPersistentVolumeClaimRetentionPolicy struct {
	// whenDeleted says what becomes of the claims when the StatefulSet is deleted: Retain or Delete. Defaults to Retain.
	// +optional
	WhenDeleted PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`
	// whenScaled says what becomes of the claims of a Pod that is scaled in, or whose ordinal is reserved: Retain or Delete. Defaults to
	// Retain.
	// +optional
	WhenScaled PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// VolumeClaimUpdateStrategyType says what a changed claim template does to the claims there are.
// +kubebuilder:validation:Enum=OnDelete;OnPodRollingUpdate
type VolumeClaimUpdateStrategyType string

const (
	// OnDeleteVolumeClaimUpdateStrategyType leaves claims alone: one that the user deletes along with its Pod comes back from the new
	// template.
	OnDeleteVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnDelete"
	// OnPodRollingUpdateVolumeClaimUpdateStrategyType expands claims in the course of a rolling update, Pod by Pod and within its limits.
	OnPodRollingUpdateVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnPodRollingUpdate"
)

// VolumeClaimUpdateStrategy says what a changed claim template does to the claims there are.
type VolumeClaimUpdateStrategy struct {
	// type is OnDelete, which leaves claims alone, or OnPodRollingUpdate, which expands them in the course of a rolling update. Defaults to
	// OnDelete.
	// +optional
	Type VolumeClaimUpdateStrategyType `json:"type,omitempty"`
}

// PodUpdateStrategyType says how one Pod is updated.
// +kubebuilder:validation:Enum=ReCreate;InPlaceIfPossible;InPlaceOnly
type PodUpdateStrategyType string

const (
	// RecreatePodUpdateStrategyType deletes the Pod and creates a new one.
	RecreatePodUpdateStrategyType PodUpdateStrategyType = "ReCreate"
	// InPlaceIfPossiblePodUpdateStrategyType changes the Pod in place where the API server allows that change, else it recreates.
	InPlaceIfPossiblePodUpdateStrategyType PodUpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnlyPodUpdateStrategyType changes the Pod in place; any other change of the template is refused.
	InPlaceOnlyPodUpdateStrategyType PodUpdateStrategyType = "InPlaceOnly"
)

// StatefulSetUpdateStrategy says how a new template is rolled out.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'OnDelete' || !has(self.rollingUpdate)",message="only allowed for updateStrategy 'RollingUpdate'",fieldPath=".rollingUpdate"
type StatefulSetUpdateStrategy struct {
	// type is RollingUpdate, which updates Pods in stages, or OnDelete, which waits for the user to delete them. Defaults to RollingUpdate.
	// +optional
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	Type appsv1.StatefulSetUpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate sets the stages. It must be absent with OnDelete.
	// +optional
	RollingUpdate *RollingUpdateStatefulSetStrategy `json:"rollingUpdate,omitempty"`
}

// RollingUpdateStatefulSetStrategy sets the stages, the limits and the order of an update.
type RollingUpdateStatefulSetStrategy struct {
	// partition is the number of Pods kept at older revisions: those with the lowest ordinals, or, with unorderedUpdate, those that come
	// last in its order. It counts Pods, and so equals an ordinal only where none is reserved and the numbering begins at 0. It may exceed
	// replicas. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Partition *int32 `json:"partition,omitempty"`

	// maxUnavailable is the most Pods that may be unavailable because of an update: a number, or a percentage of replicas, rounded down but
	// at least 1. Every unit that becomes free is used at once, so that so many Pods may be unavailable throughout the update. With
	// OrderedReady that many Pods are deleted at once and come back one after the other. Defaults to 1.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9]?[0-9]([.][0-9]{0,17}[1-9])?)%$') && !self.matches('^0+([.]0+)?%$')",message="must be 1 or more, or a percentage above 0% and up to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// podUpdatePolicy says how one Pod is updated: ReCreate, InPlaceIfPossible or InPlaceOnly. Defaults to ReCreate. The in-place policies
	// need the readiness gate InPlaceUpdateReady in the template, which a new StatefulSet is given by itself.
	// +optional
	PodUpdatePolicy PodUpdateStrategyType `json:"podUpdatePolicy,omitempty"`

	// paused stops updates; the number of Pods is still kept. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// unorderedUpdate updates Pods in another order than from the highest ordinal to the lowest. It needs podManagementPolicy Parallel.
	// +optional
	UnorderedUpdate *UnorderedUpdateStrategy `json:"unorderedUpdate,omitempty"`

	// inPlaceUpdateStrategy sets the details of an in-place update.
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`

	// minReadySeconds is how long a Pod must have been ready to count as available, in seconds, up to 300. 0 means the value of
	// spec.minReadySeconds. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=300
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// UnorderedUpdateStrategy orders the Pods of an update otherwise than by ordinal.
type UnorderedUpdateStrategy struct {
	// priorityStrategy orders the Pods of an update by their labels; among equals the highest ordinal goes first.
	// +optional
	PriorityStrategy *pub.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
}

// StatefulSetStatus is what was last seen of a StatefulSet.
type StatefulSetStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of Pods there are, those on their way out included.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of Pods that are running and ready, whatever hook they wait for.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of Pods that have been ready for minReadySeconds and are in no lifecycle hook.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// currentReplicas is the number of Pods of the current revision that are not being deleted.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas"`

	// updatedReplicas is the number of Pods of the update revision that are not being deleted.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas is the number of Pods of the update revision that are running and ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`

	// updatedAvailableReplicas is the number of Pods of the update revision that are available.
	// +optional
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas"`

	// currentRevision is the name of the last revision that all Pods were at.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the name of the revision of the present template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount goes into the hash of a revision, so that a taken name can be avoided.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// conditions tell what keeps Pods from being created or updated, FailedCreatePod and FailedUpdatePod, and how the rollout comes on,
	// Progressing.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []StatefulSetCondition `json:"conditions,omitempty"`

	// labelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// volumeClaims tell, for each claim template, how many claims have grown to its size.
	// +optional
	// +listType=atomic
	VolumeClaims []VolumeClaimStatus `json:"volumeClaims,omitempty"`
}

// StatefulSetConditionType names a condition of a StatefulSet.
type StatefulSetConditionType string

const (
	// StatefulSetConditionFailedCreatePod is True while Pods or claims could not be created or deleted.
	StatefulSetConditionFailedCreatePod StatefulSetConditionType = "FailedCreatePod"
	// StatefulSetConditionFailedUpdatePod is True while Pods or claims could not be updated.
	StatefulSetConditionFailedUpdatePod StatefulSetConditionType = "FailedUpdatePod"
	// StatefulSetConditionProgressing tells whether a rollout makes progress; it is there only with progressDeadlineSeconds. Its reasons
	// are StatefulSetUpdated while it does, StatefulSetAvailable, StatefulSetPaused and ProgressPartitionAvailable while there is nothing
	// to do, and ProgressDeadlineExceeded.
	StatefulSetConditionProgressing StatefulSetConditionType = "Progressing"
	// StatefulSetConditionWaiting is True when nothing has happened to the Pods for ten seconds and one is out of service, or a budget lets
	// none go. The message names the Pod and the reason: PodBroken, PodNotReady, PodNotAvailable, PodDeleting, LifecycleHook,
	// PodUnavailableBudget.
	StatefulSetConditionWaiting StatefulSetConditionType = "Waiting"
)

// StatefulSetCondition is one aspect of a StatefulSet's state: a condition of apps/v1, and when it was last true anew.
type StatefulSetCondition struct {
	// type of the condition.
	Type StatefulSetConditionType `json:"type"`
	// status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastUpdateTime is when the progress that the condition Progressing tells of last changed; absent from the others.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
	// lastTransitionTime is when the status of the condition last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is one word for programs to read.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a sentence for people to read.
	// +optional
	Message string `json:"message,omitempty"`
}

// VolumeClaimStatus tells how far the claims of one claim template have come.
type VolumeClaimStatus struct {
	// volumeClaimName is the name of the claim template.
	VolumeClaimName string `json:"volumeClaimName"`
	// compatibleReplicas is the number of Pods whose claim asks for at least the size of the template.
	CompatibleReplicas int32 `json:"compatibleReplicas"`
	// compatibleReadyReplicas is the number of those whose claim has that size.
	CompatibleReadyReplicas int32 `json:"compatibleReadyReplicas"`
}
