package pod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// WhyNotReady says what keeps a Pod from being ready, as far as its status names it: a container that can't be started or does not stay up,
// no node, or a node that does not answer. The code is empty where it names nothing. The words do not change from one try to the next.
func WhyNotReady(p *corev1.Pod) (code reason.Code, why string) {
	scheduled := Condition(p, corev1.PodScheduled)
	unscheduled := scheduled != nil && scheduled.Status == corev1.ConditionFalse
	switch broken := Broken(p); {
	case unscheduled && strings.Contains(scheduled.Message, "PersistentVolumeClaim"):
		return reason.WaitVolumeClaim, "it fits no node, as a claim of it is not bound"
	case unscheduled && scheduled.Reason == corev1.PodReasonSchedulingGated:
		return reason.WaitSchedule, "a scheduling gate keeps it from any node"
	case unscheduled:
		return reason.WaitSchedule, "it fits no node"
	case strings.Contains(broken, "Image"):
		return reason.WaitImagePull, broken
	case broken != "":
		return reason.ContainerBroken, broken
	case isNodeLost(p):
		return reason.NodeNotReady, "its node " + p.Spec.NodeName + " does not answer"
	}
	return "", ""
}

// isNodeLost reports whether the readiness of a Pod was taken back because its node does not answer: Kubernetes then writes the condition
// Ready alone, while all that makes a Pod ready stays True.
func isNodeLost(p *corev1.Pod) bool {
	isTrue := func(t corev1.PodConditionType) bool {
		c := Condition(p, t)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	return p.Status.Phase == corev1.PodRunning && !IsReady(p) && isTrue(corev1.ContainersReady) &&
		!slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return !isTrue(g.ConditionType) })
}

// Said returns what the kubelet says of the container that Broken names; empty where it says nothing.
func Said(p *corev1.Pod) string {
	for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil || !isStuck(waiting.Reason) {
			continue
		}
		if ended := status.LastTerminationState.Terminated; ended != nil && waiting.Reason == "CrashLoopBackOff" {
			return fmt.Sprintf("restarted %d times, the last time after exit code %d (%s)", status.RestartCount, ended.ExitCode,
				ended.Reason)
		}
		return waiting.Message
	}
	return ""
}
