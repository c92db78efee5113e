// Package keys names every label, annotation and finalizer of the suite, with who writes it and who reads it.
//
// Wire: these strings are stored in users' clusters and never change.
package keys

// Labels and annotations of lifecycle hooks. The workload controllers write them, users' controllers read them.
const (
	// LifecycleState is the Pod label whose value is the Pod's lifecycle state.
	LifecycleState = "lifecycle.apps.kruise.io/state"
	// LifecycleTimestamp is the Pod annotation that says, in RFC 3339, when the lifecycle state last changed.
	LifecycleTimestamp = "lifecycle.apps.kruise.io/timestamp"
)

// Labels that tie a Pod or a claim to its CloneSet. The CloneSet controller writes and reads them.
const (
	// InstanceID is the label shared by a Pod and its claims; it is also the end of their names.
	InstanceID = "apps.kruise.io/cloneset-instance-id"
	// PodTemplateHash is the Pod label with the short hash of the Pod's revision.
	PodTemplateHash = "pod-template-hash"
	// ScalingExcludePreparingDelete is the v1alpha1 CloneSet label that, with the value "true", stands for
	// scaleStrategy.excludePreparingDelete. Users write it.
	ScalingExcludePreparingDelete = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"
)

// SpecifiedDelete is the Pod label by which a user asks the owner to delete that Pod under the owner's own rules. Its value is ignored.
const SpecifiedDelete = "apps.kruise.io/specified-delete"

// OwnedByStatefulSet is the annotation of a claim with the name of the StatefulSet that has expanded it. The StatefulSet controller writes
// it, for software that looks for it.
const OwnedByStatefulSet = "apps.kruise.io/owned-by-asts"

// Annotations of the in-place update. The workload controllers write and read them.
const (
	// InPlaceUpdateState is the Pod annotation with the record of the last in-place update, as JSON.
	InPlaceUpdateState = "apps.kruise.io/inplace-update-state"
	// InPlaceUpdateGrace is the Pod annotation with a planned in-place update that has not touched the Pod's spec yet, as JSON.
	InPlaceUpdateGrace = "apps.kruise.io/inplace-update-grace"
	// InPlaceUpdateStateOld is the first spelling of InPlaceUpdateState: read where the new one is absent, removed at the next write.
	InPlaceUpdateStateOld = "inplace-update-state"
	// InPlaceUpdateGraceOld is the first spelling of InPlaceUpdateGrace.
	InPlaceUpdateGraceOld = "inplace-update-grace"
	// RuntimeContainersMeta is the Pod annotation with what the node daemon knows of the running containers. The node daemon writes it.
	RuntimeContainersMeta = "apps.kruise.io/runtime-containers-meta"
)

// Environment variables of the container launch order. Users write the first, the Pod webhook the second.
const (
	// ContainerPriorityEnv holds the launch priority that the user gave to a container.
	ContainerPriorityEnv = "KRUISE_CONTAINER_PRIORITY"
	// ContainerBarrierEnv refers to the ConfigMap key, "p_" and the priority, that holds the container back.
	ContainerBarrierEnv = "KRUISE_CONTAINER_BARRIER"
)

// Labels and annotations of the container launch order. Users write the first, the launch priority controller the others.
const (
	// ContainerLaunchPriority is the Pod annotation that, with the value ContainerLaunchOrdered, starts the containers in the order of
	// their list.
	ContainerLaunchPriority = "apps.kruise.io/container-launch-priority"
	ContainerLaunchOrdered  = "Ordered"
	// ContainerLaunchPriorityCompleted is the Pod annotation that is "true" once all containers may start.
	ContainerLaunchPriorityCompleted = "apps.kruise.io/container-launch-priority-completed"
	// ContainerLaunchPriorityCurrent is the annotation of a barrier, and of a Pod, with the key of the lowest priority that may start. A
	// kubelet that sees it change on a Pod tries at once to start what it could not start before.
	ContainerLaunchPriorityCurrent = "apps.kruise.io/container-launch-priority-current"
	// ContainerLaunchBarrier is the label of the ConfigMaps that hold containers back.
	ContainerLaunchBarrier = "apps.kruise.io/container-launch-barrier"
)

// Labels and annotations of a workload's revisions. The workload controllers write and read them.
const (
	// RevisionHash is the ControllerRevision label with the short hash of the revision.
	RevisionHash = "controller.kubernetes.io/hash"
	// RevisionPreDownloadCreated marks a revision whose image pull jobs have been created.
	RevisionPreDownloadCreated = "apps.kruise.io/pre-predownload-created"
	// RevisionPreDownloadIgnored marks a revision that needs no image pull jobs.
	RevisionPreDownloadIgnored = "apps.kruise.io/image-predownload-ignored"
	// RevisionClaimTemplatesHash is the annotation with the hash of the claim templates that a CloneSet revision was made with.
	RevisionClaimTemplatesHash = "kruise.io/cloneset-volumeclaimtemplate-hash"
	// RevisionClaimTemplates is the annotation with the claim templates themselves, as JSON, so that Pods of an old revision get the
	// claims that their template mounts.
	RevisionClaimTemplates = "kruise.io/cloneset-volumeclaimtemplates"
)

// Annotations of a v1alpha1 CloneSet that stand for fields of v1beta1. Users write them, conversion reads them.
const (
	ImagePreDownloadParallelism         = "apps.kruise.io/image-predownload-parallelism"
	ImagePreDownloadTimeoutSeconds      = "apps.kruise.io/image-predownload-timeout-seconds"
	ImagePreDownloadMinUpdatedReadyPods = "apps.kruise.io/image-predownload-min-updated-ready-pods"
)

// OnDeletePodUpdatePolicy is the v1alpha1 CloneSet annotation that keeps the podUpdatePolicy of v1beta1 while the update strategy is
// OnDelete: v1alpha1 has one field for both. Conversion writes and reads it.
const OnDeletePodUpdatePolicy = "kruise.io/cloneset-ondelete-pod-update-policy"

// Labels and annotations of DaemonSets.
const (
	// ProgressiveCreatePod is the v1alpha1 DaemonSet annotation that, with the value "true", stands for scaleStrategy.partitionedScaling.
	// Users write it, conversion reads it.
	ProgressiveCreatePod = "daemonset.kruise.io/progressive-create-pod"
	// TemplateGeneration is the annotation in which a DaemonSet of older software numbers its templates. Users write it, or take it over
	// from the DaemonSet that ours replaces; the DaemonSet controller copies it into the Pods' label PodTemplateGeneration.
	TemplateGeneration = "deprecated.daemonset.template.generation"
	// PodTemplateGeneration is the Pod label with the number of the template that the Pod was made from.
	PodTemplateGeneration = "pod-template-generation"
)

// Labels, annotations and finalizers of image pulls.
const (
	// ImagePullJobFinalizer keeps an ImagePullJob until the Secrets that were copied for it have been let go. The ImagePullJob controller
	// adds and removes it.
	ImagePullJobFinalizer = "apps.kruise.io/deletion-protection"
	// FakeNodeImage is the NodeImage label that keeps it although it has no node. Tests write it, the NodeImage controller reads it.
	FakeNodeImage = "apps.kruise.io/fake-nodeimage"
	// NodeImageSecretModes is the v1alpha1 NodeImage annotation, as JSON, that stands for the modes of the references to Secrets.
	// Conversion writes and reads it.
	NodeImageSecretModes = "kruise.io/nodeimage-secret-modes"
	// NodeType is the node label that says, with the value NodeTypeVirtual, that there is no machine behind the node and so no daemon.
	// Providers of such nodes write it, the NodeImage controller reads it.
	NodeType = "type"
	// NodeTypeVirtual is the value of NodeType for such nodes.
	NodeTypeVirtual = "virtual-kubelet"
	// PullSecretSource is the annotation of a copied Secret with the namespace and name of the one that it was copied from.
	PullSecretSource = "imagepulljobs.kruise.io/source-key"
	// PullSecretReferences is the annotation of a copied Secret with the ImagePullJobs that use it: namespaces and names, sorted, joined by
	// commas. The ImagePullJob controller writes and reads it.
	PullSecretReferences = "imagepulljobs.kruise.io/references"
	// PullSecretMode is the annotation that, with the value batch, marks a Secret as a copy.
	PullSecretMode = "imagepulljobs.kruise.io/mode"
	// ControlPlane is the Pod label that says which part of Kruise a Pod is: ControlPlaneDaemon for the daemon of a node. The manifests of
	// an installation write it, the ImagePullJob controller reads it.
	ControlPlane = "control-plane"
	// ControlPlaneDaemon is the value of ControlPlane for daemons.
	ControlPlaneDaemon = "daemon"
	// PulledBy is the annotation in the sandbox configuration of every pull of the daemon, with the value PulledByDaemon. Plugins of
	// container runtimes read it.
	PulledBy = "apps.kruise.io/pulling-image-by"
	// PulledByDaemon is the value of PulledBy.
	PulledByDaemon = "kruise-daemon"
)

// DeleteProtection is the label by which a user protects an object from deletion: DeleteProtectionAlways or DeleteProtectionCascading.
const (
	DeleteProtection          = "policy.kruise.io/delete-protection"
	DeleteProtectionAlways    = "Always"
	DeleteProtectionCascading = "Cascading"
	// DeleteProtectionUnlock is the annotation that names its object where the label sticks, so that the label can be removed. Users write
	// it, an optional policy reads it.
	DeleteProtectionUnlock = "policy.kruise.io/delete-protection-unlock"
	// DeleteProtectionUnlockUntil is the annotation with the time at which the label sticks again, such as 2030-01-31T12:00:00Z. Users
	// write it, an optional policy reads it.
	DeleteProtectionUnlockUntil = "policy.kruise.io/delete-protection-unlock-until"
	// ScaleProtection is the label by which a user keeps a workload from being scaled to 0: Always. Optional policies read it.
	ScaleProtection = "policy.kruise.io/scale-protection"
)

// Labels and annotations of BroadcastJobs.
const (
	// BroadcastJobName is the Pod label with the name of the job. The BroadcastJob controller writes it, users select by it.
	BroadcastJobName = "broadcastjob-name"
	// BroadcastJobControllerUID is the Pod label with the UID of the job. The BroadcastJob controller writes it.
	BroadcastJobControllerUID = "broadcastjob-controller-uid"
	// BroadcastJobPausedAtFailed is the BroadcastJob annotation with the number of failed Pods at which the failure policy paused the job,
	// so that only one more pauses it again. The BroadcastJob controller writes and reads it.
	BroadcastJobPausedAtFailed = "broadcastjob.kruise.io/paused-at-failed"
)

// Annotations of AdvancedCronJobs and their jobs.
const (
	// ScheduledAt is the annotation of a job with the slot that it was made for, in RFC 3339. The AdvancedCronJob controller writes and
	// reads it.
	ScheduledAt = "apps.kruise.io/scheduled-at"
	// ImageListPullJobTemplate is the v1alpha1 AdvancedCronJob annotation that keeps, as JSON, spec.template.imageListPullJobTemplate of
	// v1beta1. Conversion writes and reads it.
	ImageListPullJobTemplate = "apps.kruise.io/image-list-pull-job-template"
)

// Labels and annotations of SidecarSets and of what is made from them. The Pod webhook and the SidecarSet controller write and read them.
const (
	// SidecarSetHash is the annotation of a SidecarSet with the hash of its containers, and of a Pod with the record of what was injected
	// or updated last, as JSON keyed by the names of SidecarSets.
	SidecarSetHash = "kruise.io/sidecarset-hash"
	// SidecarSetHashWithoutImage is as SidecarSetHash, of the containers without their images: Pods that differ in it can't be updated in
	// place.
	SidecarSetHashWithoutImage = "kruise.io/sidecarset-hash-without-image"
	// SidecarSetInjectedList is the Pod annotation with the names of the SidecarSets that injected into it, in ascending order with commas.
	SidecarSetInjectedList = "kruise.io/sidecarset-injected-list"
	// SidecarSetInPlaceUpdateState is the Pod annotation with the image IDs that sidecars had before their last update, as JSON keyed by
	// the names of SidecarSets.
	SidecarSetInPlaceUpdateState = "kruise.io/sidecarset-inplace-update-state"
	// SidecarSetWorkingHotUpgradeContainer is the Pod annotation that says which of its two containers a hot-upgrade sidecar works in, as
	// JSON from the sidecar's name to the container's.
	SidecarSetWorkingHotUpgradeContainer = "kruise.io/sidecarset-working-hotupgrade-container"
	// SidecarSetVersionPrefix begins the Pod annotation, ended by a container's name, with the version of that hot-upgrade container. The
	// container reads it as the variable SIDECARSET_VERSION.
	SidecarSetVersionPrefix = "version.sidecarset.kruise.io/"
	// SidecarSetVersionAltPrefix begins the Pod annotation, ended by a container's name, with the version of the container's twin. The
	// container reads it as the variable SIDECARSET_VERSION_ALT.
	SidecarSetVersionAltPrefix = "versionalt.sidecarset.kruise.io/"
	// SidecarSetName is the ControllerRevision label with the name of the SidecarSet.
	SidecarSetName = "kruise.io/sidecarset-name"
	// SidecarSetCustomVersion is the ControllerRevision label with the customVersion that the SidecarSet had. On a v1alpha1 SidecarSet,
	// users write it for spec.customVersion.
	SidecarSetCustomVersion = "apps.kruise.io/sidecarset-custom-version"
	// SidecarSetCanary is the annotation that, with the value "true", makes a SidecarSet the canary of the one that SidecarSetBase names:
	// Pods that it selects get its sidecars instead of those of its base. Users write both.
	SidecarSetCanary = "apps.kruise.io/sidecarset-canary"
	SidecarSetBase   = "apps.kruise.io/sidecarset-base"
	// SidecarSetLegacyFields is the annotation of a stored SidecarSet with what v1alpha1 says in fields that v1beta1 does not have, as
	// JSON. Conversion writes and reads it.
	SidecarSetLegacyFields = "apps.kruise.io/sidecarset-legacy-fields"
	// PodScopePending is the annotation of the mutating webhook configuration with what SidecarSets select that have been admitted and may
	// not be stored yet, as JSON. The managers write and read it.
	PodScopePending = "apps.kruise.io/pod-scope-pending"
)

// Environment variables of injected containers. The Pod webhook writes them.
const (
	// SidecarInjectedEnv marks every injected container, with the value "true".
	SidecarInjectedEnv = "IS_INJECTED"
	// SidecarSetVersionEnv shows a hot-upgrade container the annotation with its version.
	SidecarSetVersionEnv = "SIDECARSET_VERSION"
	// SidecarSetVersionAltEnv shows a hot-upgrade container the annotation with the version of its twin.
	SidecarSetVersionAltEnv = "SIDECARSET_VERSION_ALT"
)

// Environment variables of sidecars that are stopped when the work of their Pod is done. Users write them.
const (
	// TerminateSidecarEnv, with the value "true", marks a sidecar that is stopped where it runs.
	TerminateSidecarEnv = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"
	// TerminateSidecarWithImageEnv marks a sidecar that is given another image, which ends by itself, where it can't be stopped.
	TerminateSidecarWithImageEnv = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
	// TerminateSidecarIgnoreExitCodeEnv, with the value "true", says of a sidecar that is stopped that its exit code does not count.
	TerminateSidecarIgnoreExitCodeEnv = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
)

// SidecarsTerminated notes on a Pod when the manager ended it although sidecars still ran. Kubelets look at once at a Pod whose annotations
// change, but only about once a minute at one of which nothing but the status has changed.
const SidecarsTerminated = "apps.kruise.io/sidecars-terminated"

const (
	// EphemeralContainersCleanup is a finalizer of EphemeralJobs made by older installations. Nothing can be taken out of a Pod again: the
	// manager takes the finalizer off.
	EphemeralContainersCleanup = "apps.kruise.io/ephemeralcontainers-cleanup"
	// EphemeralJobID is the environment variable of each container that an EphemeralJob has added, with the UID of the job. The manager
	// writes it, and finds by it what it has done.
	EphemeralJobID = "KRUISE_EJOB_ID"
)

// Labels and annotations of UnitedDeployments, and of what is made from them. The UnitedDeployment controller writes and reads them, but
// for TemplateSwitch and ContinuedWave.
const (
	// SubsetName is the label, of the workload of a subset and of its Pods, with the name of the subset. The workload selects by it.
	SubsetName = "apps.kruise.io/subset-name"
	// SubsetRevision is the label, of the workload of a subset and of its Pods, with the name of the revision that they were made from.
	SubsetRevision = "apps.kruise.io/controller-revision-hash"
	// SubsetPatch is the annotation of the workload of a subset with the patch of the subset, as JSON; empty where it has none.
	SubsetPatch = "apps.kruise.io/subset-patch"
	// SubsetApplied is the annotation of the workload of a subset with the hash of the spec that was written last, and the generation that
	// it got by that: what differs at a later generation has been changed by somebody else.
	SubsetApplied = "apps.kruise.io/subset-applied"
	// ReservedPod is the Pod label that says, with the value "true", that the Pod waits for a node while others stand in for it, and with
	// "false" that it does not. Autoscalers leave reserved Pods out by it.
	ReservedPod = "apps.kruise.io/united-deployment-reserved-pod"
	// TemplateSwitch is the annotation of a UnitedDeployment that, with the value TemplateSwitchRecreate, has the workloads of another kind
	// deleted at once, instead of when the new ones have as many ready Pods. Users write it.
	TemplateSwitch         = "apps.kruise.io/template-switch"
	TemplateSwitchRecreate = "Recreate"
	// ContinuedWave is the annotation of a UnitedDeployment that ends the pauses of a rollout up to that of a wave. Its value is the name
	// of the revision that is rolled out, a slash and the name of the wave: another rollout pauses again. Users write it.
	ContinuedWave = "apps.kruise.io/continued-wave"
)

// Migration is the annotation of a CloneSet that Pods move to from another workload, with what that is to come to, as JSON. kubectl-kruise
// writes and reads it, so that a move that was interrupted goes on; it takes it off at the end.
const Migration = "apps.kruise.io/migration"
