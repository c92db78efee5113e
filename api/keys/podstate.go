package keys

// Annotations of workloads that have a PersistentPodState of the same name made for them. Users write them, the controller of
// PersistentPodStates reads them.
const (
	// GeneratePodState asks for the PersistentPodState, with the value "true".
	GeneratePodState = "kruise.io/auto-generate-persistent-pod-state"
	// RequiredTopology lists, with commas, the node labels that must match again.
	RequiredTopology = "kruise.io/required-persistent-topology"
	// PreferredTopology lists, with commas, the node labels that should all match again. They make one term with weight 100.
	PreferredTopology = "kruise.io/preferred-persistent-topology"
	// PersistentAnnotations lists, with commas, the Pod annotations that are recorded along.
	PersistentAnnotations = "kruise.io/persistent-pod-annotations"
)

// InjectedPodState is the Pod annotation with the name of the PersistentPodState that the Pod's place was taken from. The Pod webhook
// writes it, the controller of PersistentPodStates reads it.
const InjectedPodState = "kruise.io/injected-persistent-pod-state"

// PodStateKinds is the key in the ConfigMap kruise-configuration with the further kinds that a PersistentPodState may be for, as JSON.
const PodStateKinds = "PPS_Watch_Custom_Workload_WhiteList"

// PreviousPodIPs is the annotation of a new Pod with the addresses of the Pod of its name before it, with commas between them. Admission
// writes it, plugins that assign addresses read it.
const PreviousPodIPs = "kruise.io/previous-pod-ips"
