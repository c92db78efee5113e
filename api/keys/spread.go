package keys

// Annotations of WorkloadSpreads and of the Pods that they spread.
const (
	// MatchedWorkloadSpread is the Pod annotation with the WorkloadSpread and the subset that a Pod is given to, as JSON. The Pod webhook
	// and the controller of WorkloadSpreads write it, that controller reads it.
	MatchedWorkloadSpread = "apps.kruise.io/matched-workloadspread"
	// IgnorePatchExistingPodsMetadata is the WorkloadSpread annotation that, with the value true in any case, keeps the labels and
	// annotations of a subset's patch from Pods that are taken over. Users write it.
	IgnorePatchExistingPodsMetadata = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"
	// SpreadScopePending is the annotation of the mutating webhook configuration with the WorkloadSpreads that have been admitted and may
	// not be stored yet. Managers write and read it.
	SpreadScopePending = "apps.kruise.io/spread-scope-pending"
)

// SpreadGate is the scheduling gate of Pods that are not to be scheduled before they are given to a subset of a WorkloadSpread. Users write
// it into the template of the workload, the Pod webhook and the controller of WorkloadSpreads take it away.
const SpreadGate = "apps.kruise.io/workloadspread"

// Configuration is the ConfigMap, in the namespace of Kruise, with what administrators allow while managers run. They write it.
const Configuration = "kruise-configuration"

// SpreadKinds is the key in the ConfigMap kruise-configuration with the further kinds of workloads that can be spread, as JSON.
const SpreadKinds = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
