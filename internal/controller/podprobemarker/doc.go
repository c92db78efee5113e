// Package podprobemarker looks after PodProbeMarkers themselves: it counts the Pods that they ask, tells of markers that get in each other's way, and
// keeps a deleted one until no node asks for it any more. What is asked on which node, and what is made of the answers, is package nodepodprobe's.
package podprobemarker
