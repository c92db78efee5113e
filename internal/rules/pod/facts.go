// Package pod holds facts about one Pod: whether it is active, ready, available, and since when. Every other rule and every controller
// asks here, so that "available" means the same everywhere.
//
// A Pod is available when it is running, ready for minReadySeconds, passes the readiness gate InPlaceUpdateReady, and its lifecycle state
// is Normal or absent.
package pod

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// IsActive reports whether the Pod counts as a replica: it is neither finished nor being deleted.
func IsActive(pod *corev1.Pod) bool {
	return !IsFinished(pod) && pod.DeletionTimestamp == nil
}

// IsFinished reports whether the Pod has ended, well or badly.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsScheduled reports whether the Pod has a node.
func IsScheduled(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != ""
}

// IsReady reports whether the Pod runs, is ready, and is not held out of service by an in-place update. Lifecycle states do not matter.
func IsReady(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning || !isTrue(Condition(pod, corev1.PodReady)) {
		return false
	}
	inPlace := Condition(pod, pub.InPlaceUpdateReady)
	return inPlace == nil || isTrue(inPlace)
}

// Available reports whether the Pod has been ready for minReadySeconds and is in service by its lifecycle state. When only time is
// missing, wait says how long until it becomes available; else wait is zero.
func Available(pod *corev1.Pod, minReadySeconds int32, now time.Time) (available bool, wait time.Duration) {
	if state := State(pod); state != pub.LifecycleStateNormal || !IsReady(pod) {
		return false, 0
	}
	if minReadySeconds <= 0 {
		return true, 0
	}
	since := ReadySince(pod)
	if since.IsZero() {
		return false, 0
	}
	if missing := since.Add(time.Duration(minReadySeconds) * time.Second).Sub(now); missing > 0 {
		return false, missing
	}
	return true, 0
}

// ReadySince returns when the Pod last turned ready; zero when it is not ready or does not say.
func ReadySince(pod *corev1.Pod) time.Time {
	if c := Condition(pod, corev1.PodReady); isTrue(c) {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// State returns the Pod's lifecycle state; a Pod that carries none is in Normal.
func State(pod *corev1.Pod) pub.LifecycleStateType {
	if state := pod.Labels[keys.LifecycleState]; state != "" {
		return pub.LifecycleStateType(state)
	}
	return pub.LifecycleStateNormal
}

// IsSpecifiedDelete reports whether the user asked, by a label on the Pod, that its owner delete it.
func IsSpecifiedDelete(pod *corev1.Pod) bool {
	_, ok := pod.Labels[keys.SpecifiedDelete]
	return ok
}

// MaxRestarts returns the highest restart count among the Pod's containers.
func MaxRestarts(pod *corev1.Pod) int32 {
	var most int32
	for i := range pod.Status.ContainerStatuses {
		most = max(most, pod.Status.ContainerStatuses[i].RestartCount)
	}
	return most
}

// Restarts returns how often containers of the Pod were restarted, init containers included.
func Restarts(pod *corev1.Pod) int32 {
	var all int32
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		all += status.RestartCount
	}
	return all
}

// HasReadinessGate reports whether the Pod's readiness depends on the condition.
func HasReadinessGate(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	return find(pod.Spec.ReadinessGates, func(g *corev1.PodReadinessGate) bool { return g.ConditionType == condition }) != nil
}

// AddReadinessGates makes a Pod that is not created yet wait for conditions before it is in service; each once, whatever it has already.
func AddReadinessGates(pod *corev1.Pod, gates ...corev1.PodConditionType) {
	for _, gate := range gates {
		if !HasReadinessGate(pod, gate) {
			pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
		}
	}
}

// Container returns the container of that name in the Pod's spec, or nil.
func Container(pod *corev1.Pod, name string) *corev1.Container {
	return find(pod.Spec.Containers, func(c *corev1.Container) bool { return c.Name == name })
}

// ContainerStatus returns the status of the container of that name, or nil.
func ContainerStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	return find(pod.Status.ContainerStatuses, func(s *corev1.ContainerStatus) bool { return s.Name == name })
}

// Lasting returns the container of that name that runs for as long as the Pod does, be it an init container that is restarted always; or
// nil.
func Lasting(pod *corev1.Pod, name string) *corev1.Container {
	if container := Container(pod, name); container != nil {
		return container
	}
	return find(pod.Spec.InitContainers, func(c *corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// LastingStatus returns the status of the container that Lasting returns, or nil.
func LastingStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	if status := ContainerStatus(pod, name); status != nil {
		return status
	}
	return find(pod.Status.InitContainerStatuses, func(s *corev1.ContainerStatus) bool { return s.Name == name })
}

// find returns the first item of a list that is wanted, or nil.
func find[T any](list []T, isWanted func(*T) bool) *T {
	for i := range list {
		if isWanted(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func isTrue(c *corev1.PodCondition) bool {
	return c != nil && c.Status == corev1.ConditionTrue
}

// Condition returns the Pod's condition of that type, or nil.
func Condition(pod *corev1.Pod, condition corev1.PodConditionType) *corev1.PodCondition {
	return find(pod.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == condition })
}

// SetCondition puts the condition on the Pod. The transition time becomes now only when the status changes.
func SetCondition(pod *corev1.Pod, want corev1.PodCondition, now time.Time) {
	want.LastTransitionTime = metav1.NewTime(now)
	old := Condition(pod, want.Type)
	if old == nil {
		pod.Status.Conditions = append(pod.Status.Conditions, want)
		return
	}
	if old.Status == want.Status {
		want.LastTransitionTime = old.LastTransitionTime
	}
	*old = want
}

// SetGate puts the condition of a readiness gate on the Pod. When it is not True, Ready turns False along with it, as the kubelet would
// do a moment later, so that endpoints are withdrawn at once; Ready is left to the kubelet in the other direction.
func SetGate(pod *corev1.Pod, gate corev1.PodCondition, now time.Time) {
	SetCondition(pod, gate, now)
	if gate.Status == corev1.ConditionTrue || !isTrue(Condition(pod, corev1.ContainersReady)) {
		return
	}
	ready := corev1.PodCondition{
		Type:    corev1.PodReady,
		Status:  corev1.ConditionFalse,
		Reason:  "ReadinessGatesNotReady",
		Message: `the status of pod readiness gate "` + string(gate.Type) + `" is not "True", but ` + string(gate.Status),
	}
	if old := Condition(pod, corev1.PodReady); old != nil {
		ready.ObservedGeneration = old.ObservedGeneration
	}
	SetCondition(pod, ready, now)
}

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

// Seconds returns a number of seconds of the API as a duration, at least 0 and at most 68 years: more overflow a duration.
func Seconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), math.MaxInt32)) * time.Second
}
