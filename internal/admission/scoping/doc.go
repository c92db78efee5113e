// Package scoping keeps the webhook configuration such that only those new Pods are sent to the managers that a SidecarSet selects, or that ask for
// a launch order themselves. While no manager is there to answer, these are refused, and all others are created as if Kruise were not there.
//
// The promise, at every moment from a SidecarSet's being stored on:
//
//	webhooks of the configuration  ⊇  what the stored SidecarSets select
//
// Widening comes first: the admission of a SidecarSet widens the configuration before it answers. Narrowing comes later, by the leader, when
// SidecarSets have changed or gone. What is written is always made anew from all SidecarSets that are stored, read from the API server itself,
// and from those that are on their way. The latter are noted in an annotation of the configuration, until they are seen to be stored or long
// since must have failed. Every write is on top of the version that was read, before the SidecarSets were: so of two that widen at the same time
// neither can take back what the other one did.
//
// The shipped manifest has one webhook for Pods, which asks for those that want a launch order. It says so by itself, of all Pods, and never changes.
// The webhooks for SidecarSets are not in the manifest at all, which is why applying it again takes nothing back: each is a copy of that one, as it is
// in the cluster, with another name and another condition.
//
// Where PodProbeMarkers reach Pods on virtual nodes, there is one more of these for the Pods that they select. It follows the markers without
// being in front of them, and stops no Pod while no manager is there: what it adds can be added later, too.
package scoping
