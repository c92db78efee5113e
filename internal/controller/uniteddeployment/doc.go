// Package uniteddeployment keeps one workload for each subset of a UnitedDeployment, and divides the Pods among them.
//
// Its promises: the workloads have as many replicas as wanted in all, unless the limits of the subsets leave no room, or Pods that wait for
// a node have substitutes; a subset never has two workloads of a kind for longer than it takes to see it; what somebody else
// changes in them is changed back; and nothing is touched that the UnitedDeployment does not control, whatever its labels are.
//
// Workloads are known by their controller and by the subset in their selector, which can't be changed. Their names follow from the
// UnitedDeployment, the subset and the kind, so that a creation whose answer was lost is repeated under the same name. An annotation holds
// the hash of the spec that was written last, and the generation that it got by it: a spec of that generation is as it was written,
// whatever defaults and webhooks have made of it.
//
//	template changes ── revision is stored ── each workload gets the template ── its own controller rolls it out, as far as its partition
//	template of another kind ── new workload beside the old one ── as many Pods ready ── old one is deleted
//	Pod of a subset finds no node ── Schedulable=False ── subset keeps what is ready, later ones get the rest ── tried again after a while
package uniteddeployment
