package keys

// Labels and annotations of the workloads that a UnitedDeployment has in other clusters. The controller of the hub, which is the cluster
// that the UnitedDeployment is in, writes and reads them.
const (
	// HubID is the label with the identity of the hub: the UID of its namespace kube-system. It is on the workload and on its Pods.
	HubID = "multicluster.kruise.io/hub-id"
	// HubOwnerUID is the label with the UID of the UnitedDeployment. It is on the workload and on its Pods.
	HubOwnerUID = "multicluster.kruise.io/ud-uid"
	// HubOwner is the annotation of the workload with the namespace and name of the UnitedDeployment, with a slash between them.
	HubOwner = "multicluster.kruise.io/ud"
	// AppliedHash is the annotation of the workload with the hash of what was last written.
	AppliedHash = "multicluster.kruise.io/applied-hash"
	// HubGeneration is the annotation of the workload with the generation of the UnitedDeployment that was last written.
	HubGeneration = "multicluster.kruise.io/hub-generation"
)

// What users write about clusters.
const (
	// AllowSweep is the label of a cluster object with the number of workloads of nobody that may be deleted in the cluster at a time,
	// although they are many.
	AllowSweep = "multicluster.kruise.io/allow-sweep"
	// AbandonClusters is the annotation of a UnitedDeployment with the clusters, as namespace/name joined by commas, whose workloads are
	// left behind when they cannot be deleted.
	AbandonClusters = "multicluster.kruise.io/abandon"
	// MulticlusterCleanup is the finalizer of a UnitedDeployment that has, or may have, workloads in other clusters.
	MulticlusterCleanup = "apps.kruise.io/multicluster-cleanup"
)

// Labels of cluster objects and of the Secrets that give access to them. Cluster managers write them, the manager of the hub reads them.
const (
	// KubeconfigSecret is the label, with value "true", of a Secret that stands for a cluster. Its key KubeconfigKey has a kubeconfig.
	KubeconfigSecret = "sigs.k8s.io/multicluster-runtime-kubeconfig"
	KubeconfigKey    = "kubeconfig"
	// InventoryConsumer is the label, with the name of the consumer, of a Secret that gives access to the ClusterProfile that the label
	// InventoryProfile names. Its key InventoryKey has a kubeconfig.
	InventoryConsumer = "x-k8s.io/cluster-inventory-consumer"
	InventoryProfile  = "x-k8s.io/cluster-profile"
	InventoryKey      = "Config"
	// ConsumerName is the name of Kruise as a consumer.
	ConsumerName = "kruise"
)
