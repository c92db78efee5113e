package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceDistribution copies a Secret or a ConfigMap, or an object of a further kind, into many namespaces, and keeps the copies as it
// says.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,shortName=distributor
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of namespaces that are to have a copy."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of namespaces that have one."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of namespaces that have none, or an outdated one."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the ResourceDistribution was created."
type ResourceDistribution struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec ResourceDistributionSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status ResourceDistributionStatus `json:"status,omitempty"`
}

// ResourceDistributionList is a list of ResourceDistributions.
//
// +kubebuilder:object:root=true
type ResourceDistributionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceDistribution `json:"items"`
}

// ResourceDistributionSpec says what is copied, and to where.
//
// +kubebuilder:validation:XValidation:rule="has(self.resource) != has(self.resourceFrom)",message="must have either resource or resourceFrom"
// +kubebuilder:validation:XValidation:rule="has(self.resource) == has(oldSelf.resource)",message="resource can't be exchanged for resourceFrom, nor the other way round"
// +kubebuilder:validation:XValidation:rule="(has(self.copies) && has(self.copies.name) ? self.copies.name : \"\") == (has(oldSelf.copies) && has(oldSelf.copies.name) ? oldSelf.copies.name : \"\")",message="copies.name is immutable"
type ResourceDistributionSpec struct {
	ResourceDistributionBaseSpec `json:",inline"`

	// targets are the namespaces that get a copy. None by default.
	Targets ResourceDistributionTargets `json:"targets"`
}

// ResourceDistributionBaseSpec is what both versions say in the same words.
type ResourceDistributionBaseSpec struct {
	// resource is the complete manifest of a Secret or ConfigMap, or, where the managers list these kinds, of a ServiceAccount, LimitRange
	// or NetworkPolicy. Its namespace is ignored; its apiVersion, kind and name can't be changed. Whoever can read the ResourceDistribution
	// reads it: use resourceFrom for what is to be kept secret. Whoever writes the spec for one of the further kinds must have the right to
	// create, update and delete all objects of the kind.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:validation:XValidation:rule="self.apiVersion == 'v1' && self.kind in ['Secret', 'ConfigMap', 'ServiceAccount', 'LimitRange'] || self.apiVersion == 'networking.k8s.io/v1' && self.kind == 'NetworkPolicy'",message="unknown or unsupported resource GroupKind, only support [Secret, ConfigMap, ServiceAccount, LimitRange, NetworkPolicy]"
	// +kubebuilder:validation:XValidation:rule="has(self.metadata.name) && self.metadata.name != ''",message="must have metadata.name"
	// +kubebuilder:validation:XValidation:rule="self.apiVersion == oldSelf.apiVersion && self.kind == oldSelf.kind && self.metadata.name == oldSelf.metadata.name",message="resource apiVersion, kind, and name are immutable"
	Resource *runtime.RawExtension `json:"resource,omitempty"`
	// resourceFrom names an object of one of these kinds that is copied instead, as it is at any time. Whoever creates the
	// ResourceDistribution, or changes this, must have the right to get it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind && self.name == oldSelf.name",message="kind and name are immutable"
	ResourceFrom *DistributedResourceSource `json:"resourceFrom,omitempty"`
	// conflictPolicy says what becomes of an object that has the name of the copy in a namespace and was not made by this
	// ResourceDistribution: Report, the default, leaves it alone and reports it; Adopt takes it over if nobody controls it and it has the
	// same content; Overwrite takes it over if nobody controls it. Whoever sets Overwrite must have the right to update all objects of the
	// kind. One that another object controls is never touched.
	// +optional
	// +kubebuilder:default=Report
	ConflictPolicy ResourceDistributionConflictPolicy `json:"conflictPolicy,omitempty"`
	// immutablePolicy says what becomes of a copy that says that it is immutable when the resource changes: Fail, the default, keeps it as
	// it is and reports the failure; Replace deletes it and makes it anew.
	// +optional
	// +kubebuilder:default=Fail
	ImmutablePolicy ResourceDistributionImmutablePolicy `json:"immutablePolicy,omitempty"`
	// deletionPolicy says what becomes of the copies when the ResourceDistribution is deleted: Delete, the default, deletes them; Retain
	// leaves them, owned by nobody.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy ResourceDistributionDeletionPolicy `json:"deletionPolicy,omitempty"`
	// expandNamespace replaces $(namespace) in the values of data, labels and annotations of each copy by the name of its namespace. False
	// by default: copies say what the resource says.
	// +optional
	ExpandNamespace bool `json:"expandNamespace,omitempty"`
	// copies says what the copies are called and labelled besides what the resource says. Nothing by default.
	// +optional
	Copies *DistributedCopies `json:"copies,omitempty"`
	// rollout says how a change of the resource reaches the copies that are there. At once by default. New copies are always made from the
	// resource as it is.
	// +optional
	Rollout *ResourceDistributionRollout `json:"rollout,omitempty"`
}

// DistributedResourceSource names the object that is copied.
type DistributedResourceSource struct {
	// kind is Secret or ConfigMap, or, where the managers list these kinds, ServiceAccount, LimitRange or NetworkPolicy.
	// +kubebuilder:validation:Enum=Secret;ConfigMap;ServiceAccount;LimitRange;NetworkPolicy
	Kind string `json:"kind"`
	// namespace is where the object is. That namespace gets no copy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name is the name of the object, and of the copies unless copies.name says another one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DistributedCopies says what copies are called and labelled.
type DistributedCopies struct {
	// name is the name of the copies. That of the resource by default. It can't be changed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// labels are those that each copy gets besides those of the resource, in place of which they count. None by default.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are those that each copy gets besides those of the resource, in place of which they count. None by default.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ResourceDistributionConflictPolicy says what becomes of an object that has the name of a copy.
//
// +kubebuilder:validation:Enum=Report;Adopt;Overwrite
type ResourceDistributionConflictPolicy string

const (
	// ReportConflict leaves the object alone.
	ReportConflict ResourceDistributionConflictPolicy = "Report"
	// AdoptOnConflict takes it over if it has the same content and nobody controls it.
	AdoptOnConflict ResourceDistributionConflictPolicy = "Adopt"
	// OverwriteOnConflict takes it over if nobody controls it.
	OverwriteOnConflict ResourceDistributionConflictPolicy = "Overwrite"
)

// ResourceDistributionImmutablePolicy says what becomes of an immutable copy that is outdated.
//
// +kubebuilder:validation:Enum=Fail;Replace
type ResourceDistributionImmutablePolicy string

const (
	// FailImmutable keeps it.
	FailImmutable ResourceDistributionImmutablePolicy = "Fail"
	// ReplaceImmutable deletes it and makes it anew.
	ReplaceImmutable ResourceDistributionImmutablePolicy = "Replace"
)

// ResourceDistributionDeletionPolicy says what becomes of the copies in the end.
//
// +kubebuilder:validation:Enum=Delete;Retain
type ResourceDistributionDeletionPolicy string

const (
	// DeleteCopies deletes them.
	DeleteCopies ResourceDistributionDeletionPolicy = "Delete"
	// RetainCopies leaves them.
	RetainCopies ResourceDistributionDeletionPolicy = "Retain"
)

// ResourceDistributionRollout says how a change of the resource reaches the copies that are there.
type ResourceDistributionRollout struct {
	// percent is the share of the namespaces whose copies follow the resource, rounded up, the same namespaces first at every change. 100
	// by default.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`
	// paused keeps all copies that are there as they are. False by default.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// ResourceDistributionTargets are namespaces. Those that any of the first three fields names get a copy, without those that are excluded.
// kube-system and kube-public never get one.
type ResourceDistributionTargets struct {
	ResourceDistributionNamedTargets `json:",inline"`

	// namespaceSelector selects namespaces by their labels. An empty one, the default, selects none.
	// +optional
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// ResourceDistributionNamedTargets are namespaces by name.
type ResourceDistributionNamedTargets struct {
	// allNamespaces selects every namespace. False by default.
	// +optional
	AllNamespaces bool `json:"allNamespaces,omitempty"`
	// includedNamespaces are namespaces by name, which need not exist yet.
	// +optional
	IncludedNamespaces ResourceDistributionNamespaces `json:"includedNamespaces,omitempty"`
	// excludedNamespaces get no copy, whatever else says that they do.
	// +optional
	ExcludedNamespaces ResourceDistributionNamespaces `json:"excludedNamespaces,omitempty"`
}

// ResourceDistributionNamespaces is a list of namespaces.
type ResourceDistributionNamespaces struct {
	// list are the namespaces.
	// +optional
	// +kubebuilder:validation:MaxItems=5000
	List []ResourceDistributionNamespace `json:"list,omitempty"`
	// patterns are patterns of names, in which * stands for any number of characters, such as team-*: all namespaces that there are with
	// such a name. None by default.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[-a-z0-9*]+$`
	Patterns []string `json:"patterns,omitempty"`
}

// ResourceDistributionNamespace names a namespace.
type ResourceDistributionNamespace struct {
	// name is the name of the namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// ResourceDistributionConditionType is what a condition of a ResourceDistribution is about. The status of each but the last one is True
// while the problem is there.
type ResourceDistributionConditionType string

// The conditions, in the order in which they stand in the status. Wire: clients find them by their places.
const (
	ResourceDistributionGetResourceFailed    ResourceDistributionConditionType = "GetResourceFailed"
	ResourceDistributionCreateResourceFailed ResourceDistributionConditionType = "CreateResourceFailed"
	ResourceDistributionUpdateResourceFailed ResourceDistributionConditionType = "UpdateResourceFailed"
	ResourceDistributionDeleteResourceFailed ResourceDistributionConditionType = "DeleteResourceFailed"
	ResourceDistributionConflictOccurred     ResourceDistributionConditionType = "ConflictOccurred"
	ResourceDistributionNamespaceNotExists   ResourceDistributionConditionType = "NamespaceNotExists"
	// ResourceDistributionReady sums the others up: it is True when all namespaces have their copy.
	ResourceDistributionReady ResourceDistributionConditionType = "Ready"
)

// ResourceDistributionConditionBase is what both versions say of a condition in the same words.
type ResourceDistributionConditionBase struct {
	// type is what the condition is about.
	Type ResourceDistributionConditionType `json:"type"`
	// status is True while there is the problem, and False else; of Ready it is True when there is none.
	Status metav1.ConditionStatus `json:"status"`
	// lastTransitionTime is when the status changed last.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is Succeeded, or the last error; of Ready, how many namespaces lack their copy.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ResourceDistributionCondition says whether there is a problem of one sort, and in which namespaces.
type ResourceDistributionCondition struct {
	ResourceDistributionConditionBase `json:",inline"`

	// failedNamespaces are the namespaces with the problem, at most 1000.
	// +optional
	FailedNamespaces []string `json:"failedNamespaces,omitempty"`
}

// ResourceDistributionBaseStatus is what both versions say in the same words.
type ResourceDistributionBaseStatus struct {
	// desired is the number of namespaces that are to have a copy.
	// +optional
	Desired int32 `json:"desired"`
	// succeeded is the number of namespaces that have one as it is to be.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed is the number of all others of them.
	// +optional
	Failed int32 `json:"failed"`
	// updated is the number of namespaces whose copy is made from the resource as it is now: fewer than succeeded during a staged rollout.
	// +optional
	Updated int32 `json:"updated"`
	// observedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// namespaces says, by name, what is wrong in single namespaces, of 100 at most.
	// +optional
	Namespaces []ResourceDistributionNamespaceStatus `json:"namespaces,omitempty"`
}

// ResourceDistributionNamespaceStatus says what is wrong in a namespace.
type ResourceDistributionNamespaceStatus struct {
	// name is the namespace.
	Name string `json:"name"`
	// reason is the type of the condition that it is among.
	Reason ResourceDistributionConditionType `json:"reason"`
	// message says what happened, and what would end it.
	// +optional
	Message string `json:"message,omitempty"`
}

// ResourceDistributionStatus is what was last seen of a ResourceDistribution.
type ResourceDistributionStatus struct {
	ResourceDistributionBaseStatus `json:",inline"`

	// conditions are always seven, in one order: GetResourceFailed, CreateResourceFailed, UpdateResourceFailed, DeleteResourceFailed,
	// ConflictOccurred, NamespaceNotExists, Ready.
	// +optional
	Conditions []ResourceDistributionCondition `json:"conditions,omitempty"`
}
