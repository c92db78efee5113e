// Package podprobemarker reconciles PodProbeMarkers themselves: it counts the Pods that they probe, reports markers that write the same
// condition, and keeps a deleted one until no node asks for it any more. What is asked on which node, and what is made of the answers, is
// package nodepodprobe's.
package podprobemarker
