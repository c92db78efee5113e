package keys

// Labels and annotations of Deployments and ReplicaSets during a release of partition style.
const (
	// AdvancedDeployment is the label, with the value true, of a Deployment whose ReplicaSets are moved in batches. The controller of
	// BatchReleases writes and removes it.
	AdvancedDeployment = "rollouts.kruise.io/controlled-by-advanced-deployment-controller"
	// DeploymentStrategy is the annotation of such a Deployment with how many of its Pods are to be updated, as JSON. The controller of
	// BatchReleases writes it, the controller of Deployments reads it.
	DeploymentStrategy = "rollouts.kruise.io/deployment-strategy"
	// DeploymentExtraStatus is an annotation in which the original counts updated Pods. We remove it with the others.
	DeploymentExtraStatus = "rollouts.kruise.io/deployment-extra-status"
	// HeldReplicas is the annotation of a ReplicaSet with the number of replicas that it has to keep while Pods move to another one. A
	// policy of the API server refuses any write that leaves the annotation and changes the number. The controller of Deployments writes
	// it and removes it within moments.
	HeldReplicas = "rollouts.kruise.io/held-replicas"
	// TrafficFirst is an annotation of the Pod template of a Deployment whose old template is back while requests may still be led to its
	// new Pods. With it no ReplicaSet is of that template, so that the native controller keeps all as they are until it goes.
	TrafficFirst = "rollouts.kruise.io/traffic-first"
)

// Annotations of native DaemonSets during a release.
const (
	// DaemonSetControl is the annotation of a DaemonSet with how many of its Pods stay old, and of which revision the others are to be, as
	// JSON. The controller of BatchReleases writes it, the controller of native DaemonSets reads it.
	DaemonSetControl = "rollouts.kruise.io/daemonset-advanced-control"
	// DaemonSetOriginalStrategy is the annotation of a DaemonSet with the updateStrategy.type that its user wrote, and that it gets back at
	// the end. The webhook writes it in the moment in which the template changes.
	DaemonSetOriginalStrategy = "rollouts.kruise.io/daemonset-original-update-strategy"
	// DaemonSetRevision is an annotation in which the original notes the revisions of a release. We remove it with the others.
	DaemonSetRevision = "rollouts.kruise.io/daemonset-revision"
)

// Labels and finalizers of the second Deployment of a release of canary style, which runs the new version beside the Deployment.
const (
	// CanaryDeployment is the label of the second Deployment and of its Pods with the name of the Deployment that is released; the
	// beginning of the name and a hash where it is too long for a label. The controller of BatchReleases writes it. Pods of both
	// Deployments fit the same selectors, so people and monitoring tell them apart by it.
	CanaryDeployment = "rollouts.kruise.io/canary-deployment"
	// CanaryRevision is the annotation of the second Deployment with the revision of the template that it is made of. The controller of
	// BatchReleases writes and reads it.
	CanaryRevision = "rollouts.kruise.io/canary-revision"
	// CanaryFinalizer is what the original keeps a second Deployment with. We remove it when the release of that ends, and add none: the
	// second Deployment goes with its BatchRelease.
	CanaryFinalizer = "finalizer.rollouts.kruise.io/batch-release"
)
