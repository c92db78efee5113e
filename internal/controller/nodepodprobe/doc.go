// Package nodepodprobe stands between PodProbeMarkers and the daemons of the nodes: what the markers ask of the Pods of a node it writes
// into the NodePodProbe of the node's name, and what the node's daemon answers there it puts on the Pods.
//
// Its promise: both follow, node by node, from what is there now and from nothing that went before. A NodePodProbe that is changed or
// deleted by hand comes back, a result that was not put on its Pod gets there, and what no marker asks any more is asked no more.
package nodepodprobe
