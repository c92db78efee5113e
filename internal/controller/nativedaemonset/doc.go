// Package nativedaemonset updates the Pods of native DaemonSets in batches.
//
// During a release the update strategy of a DaemonSet is OnDelete, and the annotation keys.DaemonSetControl says how many of its Pods stay
// old. This controller deletes the others, within maxUnavailable of the DaemonSet (package ondelete). Their successors are made by the
// native controller, which makes a Pod of the present template wherever one is missing. So do nodes that join get the new version, and so
// does an old Pod that somebody else deletes: such Pods are updated beyond the batch, and count for the next one.
//
// A Pod that is deleted comes back at whatever template the DaemonSet has by then. So nothing is deleted by an older look at the
// DaemonSet: before Pods go, it is read around the cache, and the annotation names the revision that it is of.
//
// A DaemonSet that waits for a Rollout that is gone, and for no BatchRelease either, gets its own strategy back: nobody else would ever
// give it.
package nativedaemonset
