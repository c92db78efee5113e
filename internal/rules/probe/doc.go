// Package probe decides what PodProbeMarkers ask of which Pods, when the answers of a container become a result, and what a result makes of its Pod.
//
// Its promise: what is asked on a node follows from the markers and the Pods alone, so that nothing is asked any more once neither wants it; and a
// result that is known is on the Pod, whatever was written before.
//
// Example: a marker "game" with a probe "idle" is asked as game#idle. It has answered yes, with a policy for yes of the label idle=true and one for no
// of the annotation deletion-cost=10: the Pod gets the label, and loses the annotation.
package probe
