// Package webhookconfig keeps the webhook configurations, and the conversion of the CRDs, as this manager needs them. It is the only writer
// of them.
//
// What they are to hold is computed by one pure function, Desired, from the manifests, the CA, the SidecarSets, the PodProbeMarkers and the
// PodUnavailableBudgets. Every manager adds addresses and CAs that are missing. Only the leader adds webhooks that are missing, takes
// anything away, and follows the objects that Pods are selected by. Two inequalities hold at every moment:
//
//	CAs of every webhook and CRD   ⊇  CAs that managers serve under
//	webhooks for Pods              ⊇  what the stored SidecarSets select
//
// The same order of reads and writes keeps both. The configuration is read first, then what it is computed from, both from the API server
// itself; and the write is conditional on the version of the configuration that was read. So what another manager has added to the
// configuration is either a conflict, or its reason is seen, too.
//
// For the first inequality a manager stores a CA before it adds it, and the leader removes a CA a day after it first saw another one
// stored. By then all managers serve under that one. For the second the admission of a SidecarSet adds what it selects before it answers.
// Until the SidecarSet is seen to be stored, or its request must have failed, an annotation of the configuration holds its selectors.
//
// The manifest has one webhook for new Pods, for those that ask for a launch order. The webhooks for SidecarSets are not in the manifest,
// which is why applying it again takes nothing back: each is a copy of that one, as it is in the cluster, with another name and another
// condition. The webhook for PodProbeMarkers, where these reach Pods on virtual nodes, is a copy as well; it stops no Pod while no manager
// is there, because what it adds can be added later. So is the webhook for evictions a copy of that for deletions of Pods with a budget: an
// eviction does not show its Pod, so that no condition tells whether a budget covers it, but the namespaces with budgets are known:
//
//	namespaces whose evictions are sent  ⊇  namespaces with a budget that says that it is in force
package webhookconfig
