package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterRegistry says where the objects are that stand for other clusters, and what becomes of a subset whose cluster does not answer.
//
// +kubebuilder:validation:XValidation:rule="(has(self.clusterType) ? self.clusterType.kind : 'ClusterProfile') == (has(oldSelf.clusterType) ? oldSelf.clusterType.kind : 'ClusterProfile')",message="is immutable: subsets would be in other clusters; remove them, and clusterRegistry, first",fieldPath=".clusterType",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="(has(self.namespaces) ? self.namespaces[0] : 'default') == (has(oldSelf.namespaces) ? oldSelf.namespaces[0] : 'default')",message="the first one is immutable: subsets that name none would be in other clusters; add others after it",fieldPath=".namespaces",reason="FieldValueForbidden"
type ClusterRegistry struct {
	// namespaces are those of the hub in which cluster objects are looked up. The first one is that of a targetCluster that names none,
	// and can't be changed. Defaults to "default".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// selector is the labels that a cluster object must have for a subset to use its cluster. Defaults to none, which any has.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Selector map[string]string `json:"selector,omitempty"`

	// clusterType is the kind of the cluster objects. It can't be changed. Defaults to ClusterProfile.
	// +optional
	ClusterType *ClusterType `json:"clusterType,omitempty"`

	// unreachablePolicy says what becomes of a subset whose cluster does not answer: Freeze leaves its number of Pods as it was last
	// written, and Reallocate, which needs the type Adaptive and Deployments or CloneSets, has other subsets run substitutes after
	// unreachableTolerationSeconds. The cluster may be running all of its Pods meanwhile. Defaults to Freeze.
	// +optional
	// +kubebuilder:validation:Enum=Freeze;Reallocate
	UnreachablePolicy UnreachablePolicyType `json:"unreachablePolicy,omitempty"`

	// unreachableTolerationSeconds is how long, in seconds, the Pods of a cluster that does not answer still count as ready. Defaults to
	// 300.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnreachableTolerationSeconds *int32 `json:"unreachableTolerationSeconds,omitempty"`

	// deletionPolicy says what the deletion of a subset, or of the UnitedDeployment, does about a cluster that does not answer: Wait waits
	// until it does, and Abandon leaves its workload there, to be deleted should the cluster ever be connected again. Defaults to Wait.
	// +optional
	// +kubebuilder:validation:Enum=Wait;Abandon
	DeletionPolicy ClusterDeletionPolicyType `json:"deletionPolicy,omitempty"`
}

// ClusterType is a kind of cluster objects.
//
// +kubebuilder:validation:XValidation:rule="self.kind in ['ClusterProfile', 'Secret']",message="must be ClusterProfile or Secret: the cluster registry of clusterregistry.k8s.io was given up, its successor is ClusterProfile",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="self.kind != 'ClusterProfile' || self.apiVersion == 'multicluster.x-k8s.io/v1alpha1'",message="must be multicluster.x-k8s.io/v1alpha1 for ClusterProfile",fieldPath=".apiVersion"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Secret' || self.apiVersion == 'v1'",message="must be v1 for Secret",fieldPath=".apiVersion"
type ClusterType struct {
	// apiVersion is multicluster.x-k8s.io/v1alpha1 for ClusterProfile, and v1 for Secret.
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// kind is ClusterProfile, or Secret for Secrets with a kubeconfig and the label sigs.k8s.io/multicluster-runtime-kubeconfig=true.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
}

// ClusterReference names a cluster object.
type ClusterReference struct {
	// namespace of the cluster object, one of those of the cluster registry. Defaults to the first of them.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
	// name of the cluster object.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// UnreachablePolicyType says what becomes of a subset whose cluster does not answer.
type UnreachablePolicyType string

const (
	// FreezeUnreachable leaves its number of Pods as it was last written.
	FreezeUnreachable UnreachablePolicyType = "Freeze"
	// ReallocateUnreachable has other subsets run substitutes.
	ReallocateUnreachable UnreachablePolicyType = "Reallocate"
)

// ClusterDeletionPolicyType says what a deletion does about a cluster that does not answer.
type ClusterDeletionPolicyType string

const (
	// WaitForCluster waits until the cluster answers.
	WaitForCluster ClusterDeletionPolicyType = "Wait"
	// AbandonInCluster leaves the workload in the cluster.
	AbandonInCluster ClusterDeletionPolicyType = "Abandon"
)

// MemberCluster is another cluster that the UnitedDeployment has been written to, or was about to be.
type MemberCluster struct {
	// namespace and name are those of the cluster object.
	Namespace string `json:"namespace"`
	// name is that of the cluster object.
	Name string `json:"name"`
	// kind is that of the cluster object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// clusterID is the UID of the cluster's namespace kube-system when it was first written to.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// phase is Active while a subset is in the cluster, Draining while the workload of one that is gone is being deleted, and Lost when
	// that cannot be done because the cluster does not answer.
	// +optional
	Phase MemberClusterPhase `json:"phase,omitempty"`
	// lastContactTime is when the cluster had last answered at the time of this status.
	// +optional
	LastContactTime *metav1.Time `json:"lastContactTime,omitempty"`
	// message says what the cluster is waited for.
	// +optional
	Message string `json:"message,omitempty"`
}

// SubsetObservation is what was last seen of a subset in another cluster.
type SubsetObservation struct {
	// replicas is the number of its Pods.
	Replicas int32 `json:"replicas"`
	// updatedReplicas is the number of its Pods of the template of revision.
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// updatedReadyReplicas is the number of those that are ready.
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`
	// revision is the name of the revision that was the newest then.
	// +optional
	Revision string `json:"revision,omitempty"`
	// maxUnavailable is the part of updateStrategy.maxUnavailable that its workload has, by what was last written. It counts as used up while
	// the cluster can't be read, because its Pods may be updated meanwhile. It is 0 while no Pods are to be updated, and without a budget.
	// +optional
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`
}

// MemberClusterPhase says how it stands with a cluster that was written to.
type MemberClusterPhase string

const (
	// MemberClusterActive means that a subset is in the cluster.
	MemberClusterActive MemberClusterPhase = "Active"
	// MemberClusterDraining means that the workload of a subset that is gone is being deleted.
	MemberClusterDraining MemberClusterPhase = "Draining"
	// MemberClusterLost means that it cannot be deleted because the cluster does not answer.
	MemberClusterLost MemberClusterPhase = "Lost"
)

const (
	// UnitedDeploymentSubsetClusterReady tells whether the cluster of the subset can be read and written. It is there only with a
	// targetCluster.
	UnitedDeploymentSubsetClusterReady UnitedDeploymentSubsetConditionType = "ClusterReady"
	// UnitedDeploymentClustersReady is True when the clusters of all subsets can be read and written.
	UnitedDeploymentClustersReady UnitedDeploymentConditionType = "ClustersReady"
	// UnitedDeploymentScaleMetricsPartial is True while subsets are in other clusters, whose Pods a HorizontalPodAutoscaler of the hub
	// cannot see.
	UnitedDeploymentScaleMetricsPartial UnitedDeploymentConditionType = "ScaleMetricsPartial"
)
