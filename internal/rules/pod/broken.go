package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Broken says why the Pod can't be expected to become ready by itself; it is empty where it may. A container that can't be started or that
// crashes again and again is such a reason, and so is a Pod that fits no node. A Pod that merely starts has none.
func Broken(p *corev1.Pod) string {
	for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && isStuck(waiting.Reason) {
			return "container " + status.Name + " waits with " + waiting.Reason
		}
	}
	if c := Condition(p, corev1.PodScheduled); p.Status.Phase == corev1.PodPending && c != nil &&
		c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
		return "it fits no node"
	}
	return ""
}

func isStuck(reason string) bool {
	switch reason {
	case "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return true
	}
	return false
}
