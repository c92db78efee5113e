package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// UnitedDeployment keeps one workload for each of several domains, such as zones or node pools, all made from one template, and divides a
// number of Pods among them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=ud
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The number of Pods wanted."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="The number of Pods there are."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of Pods of the newest template."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of Pods that are ready."
// +kubebuilder:printcolumn:name="WAVE",type="string",JSONPath=".status.wave",priority=1,description="The wave of the rollout that is under way."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the UnitedDeployment was created."
type UnitedDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec UnitedDeploymentSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status UnitedDeploymentStatus `json:"status,omitempty"`
}

// UnitedDeploymentList is a list of UnitedDeployments.
//
// +kubebuilder:object:root=true
type UnitedDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UnitedDeployment `json:"items"`
}

// UnitedDeploymentSpec is the wanted state of a UnitedDeployment. What its numbers add up to is checked by a webhook, which the subresource
// scale passes by: an autoscaler may ask for fewer Pods than the subsets do.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="is immutable: the workloads of the subsets can't select other Pods; create another UnitedDeployment",fieldPath=".selector",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!self.?topology.?scheduleStrategy.?adaptive.?reserveUnschedulablePods.orValue(false) || self.?topology.?scheduleStrategy.?type.orValue('Fixed') != 'Adaptive' || !has(self.template.statefulSetTemplate) && !has(self.template.advancedStatefulSetTemplate)",message="can only be used with deploymentTemplate and cloneSetTemplate: the Pods of a StatefulSet are replaced by number",fieldPath=".topology.scheduleStrategy.adaptive.reserveUnschedulablePods",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="self.?topology.?clusterRegistry.?unreachablePolicy.orValue('Freeze') != 'Reallocate' || !has(self.template.statefulSetTemplate) && !has(self.template.advancedStatefulSetTemplate)",message="Reallocate can only be used with deploymentTemplate and cloneSetTemplate: two Pods of a StatefulSet would have one identity",fieldPath=".topology.clusterRegistry.unreachablePolicy",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!has(self.updateStrategy) || !has(self.updateStrategy.manualUpdate) || !has(self.updateStrategy.manualUpdate.partitions) || self.updateStrategy.manualUpdate.partitions.all(name, has(self.topology) && has(self.topology.subsets) && self.topology.subsets.exists(s, s.name == name))",message="every key must be the name of a subset",fieldPath=".updateStrategy.manualUpdate.partitions"
// +kubebuilder:validation:XValidation:rule="!self.?updateStrategy.?maxUnavailable.hasValue() || self.?topology.?scheduleStrategy.?type.orValue('Fixed') != 'Adaptive' || !self.?topology.?scheduleStrategy.?adaptive.?reserveUnschedulablePods.orValue(false)",message="can't be used with reserveUnschedulablePods, which sets maxUnavailable of the workloads by the Pods that wait for nodes",fieldPath=".updateStrategy.maxUnavailable",reason="FieldValueForbidden"
type UnitedDeploymentSpec struct {
	// replicas is the number of Pods wanted in all subsets together. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// selector selects the Pods of all subsets by label. It must match the labels of the template and of its Pods, must not be empty,
	// and can't be changed. The workload of a subset selects by it and by the name of the subset.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="empty selector is invalid for uniteddeployment"
	Selector *metav1.LabelSelector `json:"selector"`

	// template is what the workloads of the subsets are made of. Exactly one of its fields is set.
	Template SubsetTemplate `json:"template"`

	// topology lists the subsets, and says how Pods are divided among them.
	// +optional
	Topology Topology `json:"topology,omitempty"`

	// updateStrategy says how far a new template is rolled out in each subset. How its Pods are replaced is up to its workload.
	// +optional
	UpdateStrategy UnitedDeploymentUpdateStrategy `json:"updateStrategy,omitempty"`

	// revisionHistoryLimit is the number of templates kept that are no longer in use, for rollback. Defaults to 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// SubsetTemplate is what the workloads of the subsets are made of. Exactly one of its fields is set. Their replicas and selector come from
// the UnitedDeployment.
//
// +kubebuilder:validation:XValidation:rule="[has(self.statefulSetTemplate), has(self.advancedStatefulSetTemplate), has(self.cloneSetTemplate), has(self.deploymentTemplate)].filter(given, given).size() == 1",message="set exactly one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate and deploymentTemplate"
type SubsetTemplate struct {
	// statefulSetTemplate makes StatefulSets of Kubernetes. Of a template that is in use only template, updateStrategy, minReadySeconds,
	// ordinals and persistentVolumeClaimRetentionPolicy can be changed.
	// +optional
	StatefulSetTemplate *StatefulSetTemplateSpec `json:"statefulSetTemplate,omitempty"`
	// advancedStatefulSetTemplate makes StatefulSets of Kruise.
	// +optional
	AdvancedStatefulSetTemplate *AdvancedStatefulSetTemplateSpec `json:"advancedStatefulSetTemplate,omitempty"`
	// cloneSetTemplate makes CloneSets.
	// +optional
	CloneSetTemplate *CloneSetTemplateSpec `json:"cloneSetTemplate,omitempty"`
	// deploymentTemplate makes Deployments.
	// +optional
	DeploymentTemplate *DeploymentTemplateSpec `json:"deploymentTemplate,omitempty"`
}

// StatefulSetTemplateSpec is what a StatefulSet of Kubernetes is made of.
type StatefulSetTemplateSpec struct {
	// metadata holds the labels and annotations of the StatefulSets.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is that of the StatefulSets. Its replicas and the partition of its updateStrategy may not be set: they come from the
	// UnitedDeployment.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec appsv1.StatefulSetSpec `json:"spec"`
}

// AdvancedStatefulSetTemplateSpec is what a StatefulSet of Kruise is made of.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spec.replicas)",message="may not be set: the number of Pods comes from the UnitedDeployment",fieldPath=".spec.replicas",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!self.spec.?updateStrategy.?rollingUpdate.?partition.hasValue()",message="may not be set: use updateStrategy.manualUpdate.partitions of the UnitedDeployment",fieldPath=".spec.updateStrategy",reason="FieldValueForbidden"
type AdvancedStatefulSetTemplateSpec struct {
	// metadata holds the labels and annotations of the StatefulSets.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is that of the StatefulSets. Its replicas and the partition of its updateStrategy may not be set: they come from the
	// UnitedDeployment.
	Spec StatefulSetSpec `json:"spec"`
}

// CloneSetTemplateSpec is what a CloneSet is made of.
type CloneSetTemplateSpec struct {
	// metadata holds the labels and annotations of the CloneSets.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is that of the CloneSets. Its replicas and its partition are not used: they come from the UnitedDeployment.
	Spec CloneSetSpec `json:"spec"`
}

// DeploymentTemplateSpec is what a Deployment is made of.
type DeploymentTemplateSpec struct {
	// metadata holds the labels and annotations of the Deployments.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is that of the Deployments. Its replicas are not used: they come from the UnitedDeployment.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec appsv1.DeploymentSpec `json:"spec"`
}

// Topology lists the subsets, and says how Pods are divided among them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.subsets) || !self.subsets.exists(s, has(s.replicas)) || !self.subsets.exists(s, has(s.minReplicas) || has(s.maxReplicas))",message="replicas of one subset and minReplicas or maxReplicas of any exclude each other",fieldPath=".subsets"
// +kubebuilder:validation:XValidation:rule="!has(self.subsets) || !self.subsets.exists(s, has(s.maxReplicas)) || self.subsets.exists(s, !has(s.maxReplicas))",message="at least one subset must have no maxReplicas: what is left of replicas goes there",fieldPath=".subsets"
// +kubebuilder:validation:XValidation:rule="self.?scheduleStrategy.?type.orValue('Fixed') != 'Adaptive' || !has(self.subsets) || !self.subsets.exists(s, has(s.replicas))",message="replicas of a subset can't be used with the type Adaptive: give minReplicas and maxReplicas",fieldPath=".subsets"
// +kubebuilder:validation:XValidation:rule="!has(self.subsets) || has(self.clusterRegistry) || !self.subsets.exists(s, has(s.targetCluster))",message="is required where a subset has a targetCluster: say in which namespaces its cluster object is",fieldPath=".clusterRegistry",reason="FieldValueRequired"
// +kubebuilder:validation:XValidation:rule="!has(self.subsets) || !has(self.clusterRegistry) || self.subsets.all(s, !has(s.targetCluster) || !has(s.targetCluster.namespace) || size(s.targetCluster.namespace) == 0 || (has(self.clusterRegistry.namespaces) ? s.targetCluster.namespace in self.clusterRegistry.namespaces : s.targetCluster.namespace == 'default'))",message="the namespace of every targetCluster must be one of clusterRegistry.namespaces",fieldPath=".subsets"
// +kubebuilder:validation:XValidation:rule="self.?clusterRegistry.?unreachablePolicy.orValue('Freeze') != 'Reallocate' || self.?scheduleStrategy.?type.orValue('Fixed') == 'Adaptive'",message="Reallocate needs scheduleStrategy.type Adaptive",fieldPath=".clusterRegistry.unreachablePolicy"
type Topology struct {
	// subsets are the domains, in the order in which they are filled.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=200
	Subsets []Subset `json:"subsets,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// scheduleStrategy says what becomes of Pods that can't be scheduled. Defaults to Fixed: they wait.
	// +optional
	ScheduleStrategy UnitedDeploymentScheduleStrategy `json:"scheduleStrategy,omitempty"`

	// clusterRegistry says where the objects are that stand for other clusters. It is there if, and only if, a subset has a targetCluster,
	// or had one.
	// +optional
	ClusterRegistry *ClusterRegistry `json:"clusterRegistry,omitempty"`
}

// Subset is one domain.
//
// +kubebuilder:validation:XValidation:rule="(has(self.nodeSelectorTerm) && (has(self.nodeSelectorTerm.matchExpressions) || has(self.nodeSelectorTerm.matchFields)) || has(oldSelf.nodeSelectorTerm) && (has(oldSelf.nodeSelectorTerm.matchExpressions) || has(oldSelf.nodeSelectorTerm.matchFields))) ? has(self.nodeSelectorTerm) && has(oldSelf.nodeSelectorTerm) && self.nodeSelectorTerm == oldSelf.nodeSelectorTerm : true",message="is immutable: add a subset of another name and remove this one",fieldPath=".nodeSelectorTerm",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="(has(self.tolerations) ? self.tolerations : []) == (has(oldSelf.tolerations) ? oldSelf.tolerations : [])",message="is immutable: add a subset of another name and remove this one",fieldPath=".tolerations",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="has(self.targetCluster) == has(oldSelf.targetCluster) && (!has(self.targetCluster) || self.targetCluster == oldSelf.targetCluster)",message="is immutable: add a subset of another name and remove this one",fieldPath=".targetCluster",reason="FieldValueForbidden"
type Subset struct {
	// name tells the subset from others. It becomes a label of the Pods, and a part of the name of the workload.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// nodeSelectorTerm says which nodes belong to the subset. It is added to every term that the template requires of a node. It can't be
	// changed. Defaults to all nodes.
	// +optional
	NodeSelectorTerm corev1.NodeSelectorTerm `json:"nodeSelectorTerm,omitempty"`

	// tolerations are added to those of the template. They can't be changed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// replicas is the number of Pods of the subset, or a percentage of all, rounded to the nearest number. Subsets without it share what is
	// left. It can't be used together with minReplicas or maxReplicas of any subset, nor with the type Adaptive.
	// +optional
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`

	// minReplicas is the number of Pods that the subset gets before any other gets more than its own minReplicas, or a percentage of all.
	// Defaults to 0 where any subset has minReplicas or maxReplicas.
	// +optional
	MinReplicas *intstr.IntOrString `json:"minReplicas,omitempty"`

	// maxReplicas is the most Pods that the subset gets, or a percentage of all. At least one subset must have none. Defaults to no limit.
	// +optional
	MaxReplicas *intstr.IntOrString `json:"maxReplicas,omitempty"`

	// targetCluster is the cluster that the subset is in. It can't be changed: add a subset of another name and remove this one. Defaults
	// to the cluster of the UnitedDeployment, the hub. In another cluster the workload is in the namespace of the same name, which has to
	// be there.
	// +optional
	TargetCluster *ClusterReference `json:"targetCluster,omitempty"`

	// patch is a strategic merge patch of the Pod template of the subset. It counts before all else, but for the labels that the Pods
	// are known by. A change of it replaces the Pods of this subset only.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Patch runtime.RawExtension `json:"patch,omitempty"`
}

// UnitedDeploymentScheduleStrategyType says what becomes of Pods that can't be scheduled.
// +kubebuilder:validation:Enum=Adaptive;Fixed;""
type UnitedDeploymentScheduleStrategyType string

const (
	// AdaptiveUnitedDeploymentScheduleStrategyType has other subsets take the place of one whose Pods can't be scheduled.
	AdaptiveUnitedDeploymentScheduleStrategyType UnitedDeploymentScheduleStrategyType = "Adaptive"
	// FixedUnitedDeploymentScheduleStrategyType has Pods wait in their subset.
	FixedUnitedDeploymentScheduleStrategyType UnitedDeploymentScheduleStrategyType = "Fixed"
)

// UnitedDeploymentScheduleStrategy says what becomes of Pods that can't be scheduled.
type UnitedDeploymentScheduleStrategy struct {
	// type is Fixed, with which they wait, or Adaptive, with which subsets further down get Pods in their place. Defaults to Fixed.
	// +optional
	Type UnitedDeploymentScheduleStrategyType `json:"type,omitempty"`

	// adaptive sets the details of the type Adaptive. It has no effect with Fixed.
	// +optional
	Adaptive *AdaptiveUnitedDeploymentStrategy `json:"adaptive,omitempty"`
}

// AdaptiveUnitedDeploymentStrategy sets when a subset counts as unschedulable, and for how long.
type AdaptiveUnitedDeploymentStrategy struct {
	// rescheduleCriticalSeconds is the age, in seconds, from which a Pod that no node takes makes the subset unschedulable. Defaults
	// to 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RescheduleCriticalSeconds *int32 `json:"rescheduleCriticalSeconds,omitempty"`

	// unschedulableDuration is how long, in seconds, a subset is unschedulable before it is tried again. With reserveUnschedulablePods
	// it is how long a Pod must have been ready before its substitute is removed. Defaults to 300.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnschedulableDuration *int32 `json:"unschedulableDuration,omitempty"`

	// reserveUnschedulablePods leaves Pods that can't be scheduled where they are, and has subsets further down run substitutes until
	// they are ready. It works with deploymentTemplate and cloneSetTemplate. Defaults to false.
	// +optional
	ReserveUnschedulablePods bool `json:"reserveUnschedulablePods,omitempty"`
}

// UnitedDeploymentUpdateStrategyType says who decides how far a new template is rolled out.
// +kubebuilder:validation:Enum=Manual;""
type UnitedDeploymentUpdateStrategyType string

// ManualUpdateStrategyType has partitions decide.
const ManualUpdateStrategyType UnitedDeploymentUpdateStrategyType = "Manual"

// UnitedDeploymentUpdateStrategy says how far a new template is rolled out in each subset.
type UnitedDeploymentUpdateStrategy struct {
	// type is Manual, with which partitions decide. Defaults to Manual.
	// +optional
	Type UnitedDeploymentUpdateStrategyType `json:"type,omitempty"`

	// manualUpdate sets the partitions. Defaults to none, so that all Pods are updated.
	// +optional
	ManualUpdate *ManualUpdate `json:"manualUpdate,omitempty"`

	// maxUnavailable is the most Pods of all subsets together that may be unavailable for a new template: a number, or a percentage of
	// replicas, rounded down but at least 1. Each workload gets a part of it as its own maxUnavailable, at most what its template says, and
	// a subset waits while nothing is left. Defaults to no limit over subsets, so that each workload keeps only to its own.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="must be 1 or more, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// waves are groups of subsets that get a new template one after the other: the next one when all Pods of the one before are updated, as
	// far as its partitions, and available. Subsets of no wave come last. A patch of a subset does not wait for waves. Defaults to none, so
	// that all subsets get it at once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Waves []UpdateWave `json:"waves,omitempty"`
}

// UpdateWave is a group of subsets that get a new template together.
type UpdateWave struct {
	// name tells the wave from others.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// subsets are the names of the subsets of the wave. A subset is in one wave at most.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	Subsets []string `json:"subsets"`
	// pause holds all that comes after the wave, once it is done, until the annotation apps.kruise.io/continued-wave of the
	// UnitedDeployment names the wave and the revision: "<status.updatedRevision>/<name>". Defaults to false.
	// +optional
	Pause bool `json:"pause,omitempty"`
}

// ManualUpdate sets how many Pods of each subset stay at their old template.
type ManualUpdate struct {
	// partitions are the numbers of Pods that stay at their old template, by the names of subsets. Subsets that are not named have 0.
	// Deployments know no partition: theirs have no effect.
	// +optional
	// +kubebuilder:validation:MaxProperties=200
	Partitions map[string]int32 `json:"partitions,omitempty"`
}
