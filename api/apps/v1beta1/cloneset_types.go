package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

// CloneSet keeps a number of alike Pods running and rolls new templates out over them in stages.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=clone
// +kubebuilder:storageversion
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
	Status CloneSetStatus `json:"status,omitempty"`
}

// CloneSetList is a list of CloneSets.
//
// +kubebuilder:object:root=true
type CloneSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CloneSet `json:"items"`
}

// CloneSetBaseSpec is what both versions say in spec.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="is immutable: delete the CloneSet with --cascade=orphan and create it anew to select other Pods",fieldPath=".selector",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="oldSelf.?progressDeadlineSeconds == self.?progressDeadlineSeconds && oldSelf.?minReadySeconds == self.?minReadySeconds || !has(self.progressDeadlineSeconds) || self.progressDeadlineSeconds > self.?minReadySeconds.orValue(0) || self.progressDeadlineSeconds == 2147483647",message="must be greater than minReadySeconds",fieldPath=".progressDeadlineSeconds",optionalOldSelf=true
type CloneSetBaseSpec struct {
	// replicas is the number of Pods wanted. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// selector selects the Pods of this CloneSet by label. It must match the labels of the template, must not be empty, and can't be
	// changed.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="empty selector is invalid for cloneset"
	Selector *metav1.LabelSelector `json:"selector"`

	// template describes the Pods. Its restartPolicy can only be Always; activeDeadlineSeconds is not allowed.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template"`

	// volumeClaimTemplates are claims that every Pod gets of its own. A volume of the template with the name of a claim template is
	// replaced by the claim. A change is used for new Pods only and starts no rollout by itself.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// revisionHistoryLimit is the number of revisions kept that no Pod uses any more, for rollback. Defaults to 10.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// minReadySeconds is how long a Pod must have been ready to count as available, in seconds. Defaults to 0.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// lifecycle lists the hooks at which Pods wait for a controller of the user's.
	// +optional
	Lifecycle *pub.Lifecycle `json:"lifecycle,omitempty"`

	// progressDeadlineSeconds is how long a rollout may make no progress, in seconds, before the condition Progressing turns False with the
	// reason ProgressDeadlineExceeded. The rollout goes on all the same. The condition stays False until the rollout is complete, or as
	// complete as the partition allows, is paused, or has another template. Unset, or 2147483647, means that no progress is reported. Any
	// other value must be greater than minReadySeconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// CloneSetSpec is the wanted state of a CloneSet.
//
// +kubebuilder:validation:XValidation:rule="oldSelf.?replicas.orValue(1) > 0 && oldSelf.?updateStrategy.?type.orValue('None') != 'OnDelete' && [oldSelf.?updateStrategy.?rollingUpdate.?maxUnavailable.orValue('20%')].exists(m, m == 0 || m == '0%') && [oldSelf.?updateStrategy.?rollingUpdate.?maxSurge.orValue(0)].exists(m, m == 0 || m == '0%') || has(self.replicas) && self.replicas == 0 || !has(self.updateStrategy) || !has(self.updateStrategy.rollingUpdate) || has(self.updateStrategy.type) && self.updateStrategy.type == 'OnDelete' || !has(self.updateStrategy.rollingUpdate.maxUnavailable) || !string(self.updateStrategy.rollingUpdate.maxUnavailable).matches('^0+([.]0+)?%?$') || has(self.updateStrategy.rollingUpdate.maxSurge) && !string(self.updateStrategy.rollingUpdate.maxSurge).matches('^0+([.]0+)?%?$')",message="maxUnavailable and maxSurge should not both be less than 1: an update could never start",fieldPath=".updateStrategy.rollingUpdate.maxUnavailable",optionalOldSelf=true
type CloneSetSpec struct {
	CloneSetBaseSpec `json:",inline"`

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

	// enablePVCReuse lets a new Pod take over the claims, and so the name, of a Pod that was deleted from outside. Defaults to false:
	// claims go with their Pod.
	// +optional
	// +kubebuilder:default=false
	EnablePVCReuse bool `json:"enablePVCReuse"`

	// excludePreparingDelete leaves Pods in the state PreparingDelete out of the count of replicas, so that each is replaced at once.
	// Defaults to false.
	// +optional
	ExcludePreparingDelete bool `json:"excludePreparingDelete,omitempty"`
}

// CloneSetUpdateStrategyType says who starts the update of a Pod.
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type CloneSetUpdateStrategyType string

const (
	// RollingUpdateCloneSetStrategyType updates Pods by itself, in stages.
	RollingUpdateCloneSetStrategyType CloneSetUpdateStrategyType = "RollingUpdate"
	// OnDeleteCloneSetStrategyType leaves Pods alone: one that the user deletes comes back at the update revision.
	OnDeleteCloneSetStrategyType CloneSetUpdateStrategyType = "OnDelete"
)

// CloneSetPodUpdatePolicyType says how one Pod is updated.
// +kubebuilder:validation:Enum=ReCreate;InPlaceIfPossible;InPlaceOnly
type CloneSetPodUpdatePolicyType string

const (
	// RecreateCloneSetPodUpdatePolicyType deletes the Pod and creates a new one.
	RecreateCloneSetPodUpdatePolicyType CloneSetPodUpdatePolicyType = "ReCreate"
	// InPlaceIfPossibleCloneSetPodUpdatePolicyType changes the Pod in place where the API server allows that change, else it recreates.
	InPlaceIfPossibleCloneSetPodUpdatePolicyType CloneSetPodUpdatePolicyType = "InPlaceIfPossible"
	// InPlaceOnlyCloneSetPodUpdatePolicyType changes the Pod in place; any other change of the template is refused.
	InPlaceOnlyCloneSetPodUpdatePolicyType CloneSetPodUpdatePolicyType = "InPlaceOnly"
)

// CloneSetUpdateStrategy says how a new template is rolled out.
//
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'OnDelete' || !has(self.rollingUpdate) || !has(self.rollingUpdate.podUpdatePolicy) || self.rollingUpdate.podUpdatePolicy != 'InPlaceOnly' || !has(self.rollingUpdate.maxSurge) || string(self.rollingUpdate.maxSurge).matches('^0+([.]0+)?%?$')",message="must be 0 with InPlaceOnly: surge Pods would have to be created and deleted",fieldPath=".rollingUpdate.maxSurge"
type CloneSetUpdateStrategy struct {
	// type is RollingUpdate, which updates Pods in stages, or OnDelete, which waits for the user to delete them. Defaults to RollingUpdate.
	// +optional
	Type CloneSetUpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate sets the stages. It has no effect with OnDelete.
	// +optional
	RollingUpdate *RollingUpdateCloneSetStrategy `json:"rollingUpdate,omitempty"`
}

// RollingUpdateCloneSetStrategy sets the stages, the limits and the order of an update.
type RollingUpdateCloneSetStrategy struct {
	// podUpdatePolicy says how one Pod is updated: ReCreate, InPlaceIfPossible or InPlaceOnly. Defaults to ReCreate.
	// +optional
	PodUpdatePolicy CloneSetPodUpdatePolicyType `json:"podUpdatePolicy,omitempty"`

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

	// imagePreDownloadParallelism is the number of nodes that pull a new image ahead of the update at the same time. Defaults to 1.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^[0-9]{1,10}$') && int(self) <= 2147483647",message="must be a number of 0 or more, not a percentage"
	ImagePreDownloadParallelism *intstr.IntOrString `json:"imagePreDownloadParallelism,omitempty"`

	// imagePreDownloadTimeoutSeconds is how long one node may take to pull an image ahead of the update, in seconds. Defaults to 300.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ImagePreDownloadTimeoutSeconds *int32 `json:"imagePreDownloadTimeoutSeconds,omitempty"`

	// imagePreDownloadMinUpdatedReadyPods is the number of updated Pods that must be ready before images are pulled ahead of the update.
	// Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ImagePreDownloadMinUpdatedReadyPods *int32 `json:"imagePreDownloadMinUpdatedReadyPods,omitempty"`
}

// CloneSetStatus is what was last seen of a CloneSet.
type CloneSetStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of Pods there are, surge included, without those that are finished or being deleted.
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of Pods that are running and ready.
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of Pods that have been ready for minReadySeconds and are in no lifecycle hook.
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas is the number of Pods of the update revision.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas is the number of Pods of the update revision that are running and ready.
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`

	// updatedAvailableReplicas is the number of Pods of the update revision that are available.
	// +optional
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas"`

	// expectedUpdatedReplicas is the number of Pods that the update revision is wanted on: replicas less partition.
	// +optional
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas"`

	// updateRevision is the name of the revision of the present template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// currentRevision is the name of the last revision that all Pods were at.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// collisionCount goes into the hash of a revision, so that a taken name can be avoided.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// labelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// conditions tell how scaling, updating and progress stand.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []CloneSetCondition `json:"conditions,omitempty"`
}

// CloneSetConditionType names a condition of a CloneSet.
type CloneSetConditionType string

const (
	// CloneSetConditionFailedScale is True while Pods or claims could not be created or deleted.
	CloneSetConditionFailedScale CloneSetConditionType = "FailedScale"
	// CloneSetConditionFailedUpdate is True while Pods could not be updated.
	CloneSetConditionFailedUpdate CloneSetConditionType = "FailedUpdate"
	// CloneSetConditionProgressing tells whether a rollout makes progress; it is there only with progressDeadlineSeconds.
	CloneSetConditionProgressing CloneSetConditionType = "Progressing"
	// CloneSetConditionWaiting is True when nothing has happened to the Pods for ten seconds and one is out of service, or a budget lets
	// none go. The message names the Pod and the reason: PodBroken, PodNotReady, PodNotAvailable, PodDeleting, LifecycleHook,
	// PodUnavailableBudget.
	CloneSetConditionWaiting CloneSetConditionType = "Waiting"
)

// Reasons of the condition Progressing.
const (
	// CloneSetAvailable means that all Pods are updated and available.
	CloneSetAvailable = "CloneSetAvailable"
	// CloneSetPaused means that the update is paused.
	CloneSetPaused = "CloneSetPaused"
	// CloneSetProgressPartitionAvailable means that as many Pods as the partition allows are updated and available.
	CloneSetProgressPartitionAvailable = "ProgressPartitionAvailable"
	// CloneSetProgressDeadlineExceeded means that there was no progress for progressDeadlineSeconds.
	CloneSetProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// CloneSetProgressUpdated means that the rollout goes on.
	CloneSetProgressUpdated = "CloneSetUpdated"
)

// CloneSetCondition is one aspect of a CloneSet's state.
type CloneSetCondition struct {
	// type of the condition.
	Type CloneSetConditionType `json:"type"`
	// status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastUpdateTime is when the condition, or the progress that it tells of, last changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
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
