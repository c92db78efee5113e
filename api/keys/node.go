package keys

// Labels, finalizers and annotations of ContainerRecreateRequests.
const (
	// RecreatePodUID is the label of a request with the UID of its Pod. Admission writes it, the manager finds the requests of a Pod by it.
	RecreatePodUID = "crr.apps.kruise.io/pod-uid"
	// RecreateNodeName is the label of a request with the node of its Pod. Admission writes it, the daemon of that node watches by it.
	RecreateNodeName = "crr.apps.kruise.io/node-name"
	// RecreateActive is the label, of the value "true", of a request that has not ended. Admission writes it, the daemon watches by it, the
	// manager takes it off.
	RecreateActive = "crr.apps.kruise.io/active"
	// RecreateUnreadyAcquired is the finalizer of a request that keeps its Pod out of service, and the annotation with which v1alpha1 says
	// since when it does, in RFC 3339. The manager writes and reads the finalizer, conversion the annotation.
	RecreateUnreadyAcquired = "crr.apps.kruise.io/unready-acquired"
	// RecreateSyncContainerStatuses is the annotation with which v1alpha1 tells the daemon of the readiness of the new containers, as JSON.
	// Conversion writes and reads it.
	RecreateSyncContainerStatuses = "crr.apps.kruise.io/sync-container-statuses"
)

// ProbeCleanup is the finalizer by which a PodProbeMarker stays until its probes are gone from the nodes. The manager writes it.
const ProbeCleanup = "kruise.io/node-pod-probe-cleanup"

// Annotations of Pods on virtual nodes. Admission writes them, the provider of the node reads them.
const (
	// PodProbes holds the probes to run, as JSON.
	PodProbes = "kruise.io/podprobe"
	// PodProbeMarkers names the PodProbeMarkers that they come from, separated by commas.
	PodProbeMarkers = "kruise.io/podprobemarker-list"
)
