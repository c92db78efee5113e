package keys

// Labels and annotations of Deployments and ReplicaSets during a release of partition style.
const (
	// AdvancedDeployment is the label, with the value true, of a Deployment whose ReplicaSets are moved in batches. The controller of
	// BatchReleases writes and removes it.
	AdvancedDeployment = "rollouts.kruise.io/controlled-by-advanced-deployment-controller"
	// DeploymentStrategy is the annotation of such a Deployment with how many of its Pods are to be updated, as JSON. The controller of
	// BatchReleases writes it, the controller of Deployments reads it.
	DeploymentStrategy = "rollouts.kruise.io/deployment-strategy"
	// HeldReplicas is the annotation of a ReplicaSet with the number of replicas that it has to keep while Pods move to another one. A
	// policy of the API server refuses any write that leaves the annotation and changes the number. The controller of Deployments writes
	// it and removes it within moments.
	HeldReplicas = "rollouts.kruise.io/held-replicas"
)
