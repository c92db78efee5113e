package keys

// Labels and annotations of workloads and Pods during a release of a Rollout.
const (
	// WorkloadType is the label of a workload that a Rollout names: deployment, cloneset, statefulset or daemonset. The controller of
	// Rollouts writes it, their webhooks select by it. On a kind that is only like a StatefulSet, users write it.
	WorkloadType = "rollouts.kruise.io/workload-type"
	// InProgressing is the annotation of a workload whose new template waits for a Rollout, as JSON: {"rolloutName":"name"}. The webhook
	// writes it with the change that begins a release, the controller removes it last.
	InProgressing = "rollouts.kruise.io/in-progressing"
	// ControlInfo is the annotation of a workload with the owner reference, as JSON, of the BatchRelease that drives it.
	ControlInfo = "batchrelease.rollouts.kruise.io/control-info"
	// RolloutID is the label or annotation of a workload by which users name a release, and the label of the Pods that it updated.
	RolloutID = "rollouts.kruise.io/rollout-id"
	// RolloutBatchID is the label of a Pod with the batch, counted from 1, that updated it.
	RolloutBatchID = "rollouts.kruise.io/rollout-batch-id"
	// BatchMetadata is the annotation of a Pod to which its batch has given labels and annotations, with what it had before under their
	// keys, as JSON.
	BatchMetadata = "rollouts.kruise.io/batch-metadata"
	// InPlaceUpdate is the label of the Pod template of a StatefulSet of Kubernetes by which, with the value true, users have a release
	// update its Pods in place.
	InPlaceUpdate = "rollouts.kruise.io/in-place-update"
	// NoNeedUpdate is the label of a Pod that was at the wanted revision when a rollback in batches began, with the name of the release.
	NoNeedUpdate = "rollouts.kruise.io/no-need-update"
	// StableRevision is the label of a Deployment with the pod-template-hash that its release came from.
	StableRevision = "rollouts.kruise.io/stable-revision"
	// OriginalDeploymentStrategy is the annotation of a workload with what the controller changed of its strategy, as JSON, to be restored.
	OriginalDeploymentStrategy = "rollouts.kruise.io/original-deployment-strategy"
	// OriginalSpecConfiguration is the annotation of an object that leads traffic with what it was before the release, as JSON.
	OriginalSpecConfiguration = "rollouts.kruise.io/original-spec-configuration"
)

// RolloutName is the label of a RolloutHistory with the name of its Rollout; it is left out where the name is too long for a label.
const RolloutName = "rollouts.kruise.io/rollout-name"

// AnalysisCheck is the label of a Job that measures for a Rollout, with the name of the check.
const AnalysisCheck = "rollouts.kruise.io/analysis-check"

// Annotations of Rollouts.
const (
	// RollbackInBatch, with the value true, has a rollback go in the steps of the release. Users write it.
	RollbackInBatch = "rollouts.kruise.io/rollback-in-batch"
	// ResumedRevision is the annotation of a BatchRelease with the revision that its workload may go on with by itself. The controller of
	// Rollouts writes it. Of any other template, which came later, it has yet to decide.
	ResumedRevision = "rollouts.kruise.io/resumed-revision"
	// RollingStyle is the style of a Rollout or BatchRelease of v1alpha1: partition, canary or bluegreen.
	RollingStyle = "rollouts.kruise.io/rolling-style"
	// TrafficRoutingName is the name of the TrafficRouting of a Rollout of v1alpha1.
	TrafficRoutingName = "rollouts.kruise.io/trafficrouting"
	// RolloutHub is the annotation of a Rollout or BatchRelease as v1alpha1 shows it with what that version can't say, as JSON. Conversion
	// writes and reads it; it is never stored.
	RolloutHub = "rollouts.kruise.io/v1beta1"
)

// Finalizers of TrafficRoutings.
const (
	// TrafficRoutingFinalizer keeps a TrafficRouting until its routes are restored.
	TrafficRoutingFinalizer = "rollouts.kruise.io/trafficrouting"
	// TrafficRoutingProgressing, with the name of a Rollout behind it, has a TrafficRouting lead traffic while the Rollout has a release.
	// The controller of Rollouts writes it.
	TrafficRoutingProgressing = "progressing.rollouts.kruise.io/"
)
