package features

// Gate is the name of a feature gate.
type Gate string

// Gates that something asks for by name. The others are known so that a --feature-gates of an existing installation still parses.
const (
	// PodWebhook: admission of Pods. Off forces every gate off that needs it.
	PodWebhook Gate = "PodWebhook"
	// KruiseDaemon: a daemon runs on the nodes. Off forces every gate off that needs it.
	KruiseDaemon Gate = "KruiseDaemon"
	// DaemonWatchingPod: daemons tell on Pods what their containers really run with.
	DaemonWatchingPod Gate = "DaemonWatchingPod"
	// CloneSetShortHash: label values of a CloneSet's Pods hold the hash of the revision instead of its name.
	CloneSetShortHash Gate = "CloneSetShortHash"
	// KruisePodReadinessGate: every Pod gets the readiness gate KruisePodReady.
	KruisePodReadinessGate Gate = "KruisePodReadinessGate"
	// PreDownloadImageForInPlaceUpdate: images are pulled on the nodes before Pods are updated in place.
	PreDownloadImageForInPlaceUpdate Gate = "PreDownloadImageForInPlaceUpdate"
	// PreDownloadImageForDaemonSetUpdate: images are pulled on the nodes before Pods of DaemonSets are updated.
	PreDownloadImageForDaemonSetUpdate Gate = "PreDownloadImageForDaemonSetUpdate"
	// CloneSetPartitionRollback: raising the partition takes updated Pods back to the current revision.
	CloneSetPartitionRollback Gate = "CloneSetPartitionRollback"
	// ResourcesDeletionProtection: objects with the deletion protection label are not deleted while they are in use.
	ResourcesDeletionProtection Gate = "ResourcesDeletionProtection"
	// DeletionProtectionForCRDCascadingGate: the objects of a CRD with the label are counted before it is deleted.
	DeletionProtectionForCRDCascadingGate Gate = "DeletionProtectionForCRDCascadingGate"
	// PodUnavailableBudgetDeleteGate: budgets judge deletions and evictions.
	PodUnavailableBudgetDeleteGate Gate = "PodUnavailableBudgetDeleteGate"
	// InPlacePodVerticalScaling: a resize is nothing to a budget that does not name it. Off, whoever guards against updates guards against
	// it, too.
	InPlacePodVerticalScaling Gate = "InPlacePodVerticalScaling"
	// PodUnavailableBudgetUpdateGate: budgets also judge updates in place.
	PodUnavailableBudgetUpdateGate Gate = "PodUnavailableBudgetUpdateGate"
	// TemplateNoDefaults: templates are stored as they were written.
	TemplateNoDefaults Gate = "TemplateNoDefaults"
	// InPlaceUpdateEnvFromMetadata: a changed label or annotation that an environment variable reads restarts the container.
	InPlaceUpdateEnvFromMetadata Gate = "InPlaceUpdateEnvFromMetadata"
	// CloneSetEventHandlerOptimization: changes of Pods that cannot matter do not wake the CloneSet's reconciler.
	CloneSetEventHandlerOptimization Gate = "CloneSetEventHandlerOptimization"
	// PreparingUpdateAsUpdate: Pods in state PreparingUpdate count as updated.
	PreparingUpdateAsUpdate Gate = "PreparingUpdateAsUpdate"
	// PodProbeMarkerGate: the daemons ask containers the questions of PodProbeMarkers.
	PodProbeMarkerGate Gate = "PodProbeMarkerGate"
	// EnablePodProbeMarkerOnServerless: PodProbeMarkers reach Pods on virtual nodes, whose providers run the probes.
	EnablePodProbeMarkerOnServerless Gate = "EnablePodProbeMarkerOnServerless"
	// ImagePullJobGate: image pull jobs are served.
	ImagePullJobGate Gate = "ImagePullJobGate"
	// RecreatePodWhenChangeVCTInCloneSetGate: a change of the claim templates recreates Pods.
	RecreatePodWhenChangeVCTInCloneSetGate Gate = "RecreatePodWhenChangeVCTInCloneSetGate"
	// EnableExternalCerts: another controller makes the serving certificate and fills in the CA bundles.
	EnableExternalCerts Gate = "EnableExternalCerts"
	// ForceDeleteTimeoutExpectationGate: expectations that are too old are dropped.
	ForceDeleteTimeoutExpectationGate Gate = "ForceDeleteTimeoutExpectationGate"
	// InPlaceWorkloadVerticalScaling: a change of cpu and memory is an update in place.
	InPlaceWorkloadVerticalScaling Gate = "InPlaceWorkloadVerticalScaling"
	// StatefulSetAutoDeletePVC: StatefulSets heed persistentVolumeClaimRetentionPolicy.
	StatefulSetAutoDeletePVC Gate = "StatefulSetAutoDeletePVC"
	// StatefulSetAutoResizePVCGate: StatefulSets heed volumeClaimUpdateStrategy.
	StatefulSetAutoResizePVCGate Gate = "StatefulSetAutoResizePVCGate"
	// SidecarSetPatchPodMetadataDefaultsAllowed: SidecarSets may write every annotation that no rule of the configuration speaks of.
	SidecarSetPatchPodMetadataDefaultsAllowed Gate = "SidecarSetPatchPodMetadataDefaultsAllowed"
	// ResourceDistributionGate: Secrets and ConfigMaps are copied into many namespaces.
	ResourceDistributionGate Gate = "ResourceDistributionGate"
	// StatefulSetStartOrdinal: StatefulSets heed ordinals.start.
	StatefulSetStartOrdinal Gate = "StatefulSetStartOrdinal"
	// WorkloadSpread: new Pods are given to the subsets of WorkloadSpreads.
	WorkloadSpread Gate = "WorkloadSpread"
	// SidecarTerminator: sidecars of Pods whose work is done are stopped.
	SidecarTerminator Gate = "SidecarTerminator"
	// EnableSortSidecarContainerByName: sidecars of all SidecarSets stand in a Pod in the order of their names.
	EnableSortSidecarContainerByName Gate = "EnableSortSidecarContainerByName"
	// UnitedDeploymentMultiCluster: subsets of UnitedDeployments can be in other clusters.
	UnitedDeploymentMultiCluster Gate = "UnitedDeploymentMultiCluster"
	// DefaultHostNetworkHostPortsInPodTemplates: templates on the host's network get host ports by default.
	DefaultHostNetworkHostPortsInPodTemplates Gate = "DefaultHostNetworkHostPortsInPodTemplates"
)

// Gates that only force others, or are only forced.
const (
	enhancedLivenessProbe Gate = "EnhancedLivenessProbe"
)

// stage is how far a gate has come; AllAlpha and AllBeta switch all gates of one stage.
type stage string

const (
	alpha stage = "AllAlpha"
	beta  stage = "AllBeta"
)

type spec struct {
	gate  Gate
	on    bool
	stage stage
}

// specs returns every known gate with its default.
func specs() []spec {
	return []spec{
		{PodWebhook, true, beta},
		{KruiseDaemon, true, beta},
		{DaemonWatchingPod, true, beta},
		{CloneSetShortHash, false, alpha},
		{KruisePodReadinessGate, false, alpha},
		{PreDownloadImageForInPlaceUpdate, false, alpha},
		{CloneSetPartitionRollback, false, alpha},
		{ResourcesDeletionProtection, true, beta},
		{WorkloadSpread, true, beta},
		{PodUnavailableBudgetDeleteGate, true, beta},
		{PodUnavailableBudgetUpdateGate, false, alpha},
		{TemplateNoDefaults, false, alpha},
		{InPlaceUpdateEnvFromMetadata, true, beta},
		{StatefulSetAutoDeletePVC, true, beta},
		{SidecarSetPatchPodMetadataDefaultsAllowed, false, alpha},
		{SidecarTerminator, false, alpha},
		{PodProbeMarkerGate, true, beta},
		{PreDownloadImageForDaemonSetUpdate, false, alpha},
		{CloneSetEventHandlerOptimization, false, alpha},
		{PreparingUpdateAsUpdate, false, alpha},
		{ImagePullJobGate, false, alpha},
		{ResourceDistributionGate, false, beta},
		{DeletionProtectionForCRDCascadingGate, false, alpha},
		{enhancedLivenessProbe, false, alpha},
		{RecreatePodWhenChangeVCTInCloneSetGate, false, alpha},
		{StatefulSetStartOrdinal, true, beta},
		{"PodIndexLabel", true, beta},
		{EnableExternalCerts, false, alpha},
		{StatefulSetAutoResizePVCGate, false, alpha},
		{ForceDeleteTimeoutExpectationGate, false, alpha},
		{InPlaceWorkloadVerticalScaling, false, alpha},
		{EnablePodProbeMarkerOnServerless, false, alpha},
		{EnableSortSidecarContainerByName, false, alpha},
		{InPlacePodVerticalScaling, false, alpha},
		{DefaultHostNetworkHostPortsInPodTemplates, false, alpha},
		{UnitedDeploymentMultiCluster, false, alpha},
		{"DaemonSetPruneIneligibleNodes", false, alpha},
	}
}

// needs returns, by gate, the gates that cannot be on while it is off.
func needs() map[Gate][]Gate {
	return map[Gate][]Gate{
		PodWebhook: {
			KruisePodReadinessGate, PodUnavailableBudgetDeleteGate, PodUnavailableBudgetUpdateGate, WorkloadSpread,
			SidecarSetPatchPodMetadataDefaultsAllowed, enhancedLivenessProbe, EnablePodProbeMarkerOnServerless,
		},
		KruiseDaemon: {
			PreDownloadImageForInPlaceUpdate, DaemonWatchingPod, InPlaceUpdateEnvFromMetadata, PreDownloadImageForDaemonSetUpdate,
			PodProbeMarkerGate, SidecarTerminator, ImagePullJobGate, enhancedLivenessProbe,
		},
		DaemonWatchingPod:           {InPlaceUpdateEnvFromMetadata},
		ResourcesDeletionProtection: {DeletionProtectionForCRDCascadingGate},
	}
}
