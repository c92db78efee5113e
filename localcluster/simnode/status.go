package simnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/kubelet/status"
)

// Status is what a kubelet reports of a Sandbox. Conditions that kubelets do not own are kept from s.Pod, and times of
// transition change only with the status they belong to.
func Status(box Sandbox, s Situation) corev1.PodStatus {
	pod, old := s.Pod, &s.Pod.Status
	now := *old.DeepCopy()
	now.ObservedGeneration = pod.Generation
	now.Phase = box.Phase
	now.HostIP = s.HostIP
	now.HostIPs = []corev1.HostIP{{IP: s.HostIP}}
	started := stamp(box.Admitted)
	if old.StartTime != nil {
		started = *old.StartTime
	}
	now.StartTime = &started
	if up := !s.Now.Before(box.Up); up {
		ip := box.IP
		if pod.Spec.HostNetwork {
			ip = s.HostIP
		}
		now.PodIP = ip
		now.PodIPs = []corev1.PodIP{{IP: ip}}
	}
	now.InitContainerStatuses, now.ContainerStatuses, now.EphemeralContainerStatuses = nil, nil, nil
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		entry := containerStatus(&box, s, container)
		if !podutil.IsRestartableInitContainer(container) {
			entry.Ready = box.container(container.Name).done() // an init container is ready when it has done its work
		}
		now.InitContainerStatuses = append(now.InitContainerStatuses, entry)
	}
	for i := range pod.Spec.Containers {
		now.ContainerStatuses = append(now.ContainerStatuses, containerStatus(&box, s, &pod.Spec.Containers[i]))
	}
	for i := range pod.Spec.EphemeralContainers {
		container := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		entry := containerStatus(&box, s, &container)
		entry.Ready, entry.Started, entry.Resources, entry.AllocatedResources = false, nil, nil, nil
		now.EphemeralContainerStatuses = append(now.EphemeralContainerStatuses, entry)
	}
	now.Conditions = conditions(box, s, &now)
	return now
}

// conditions are those of the Pod with the kubelet's own brought up to date, in a kubelet's words.
func conditions(box Sandbox, s Situation, now *corev1.PodStatus) []corev1.PodCondition {
	pod, old := s.Pod, &s.Pod.Status
	all := append(append([]corev1.ContainerStatus{}, now.InitContainerStatuses...), now.ContainerStatuses...)
	up := corev1.PodCondition{
		Type:               corev1.PodReadyToStartContainers,
		Status:             corev1.ConditionFalse,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(old, pod.Generation, corev1.PodReadyToStartContainers),
	}
	if !s.Now.Before(box.Up) && !box.Stopped && !terminal(box.Phase) {
		up.Status = corev1.ConditionTrue
	}
	scheduled := corev1.PodCondition{
		Type:               corev1.PodScheduled,
		Status:             corev1.ConditionTrue,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(old, pod.Generation, corev1.PodScheduled),
	}
	ours := []corev1.PodCondition{
		up,
		status.GeneratePodInitializedCondition(pod, old, all, now.Phase),
		status.GeneratePodReadyCondition(pod, old, old.Conditions, all, now.Phase),
		status.GenerateContainersReadyCondition(pod, old, all, now.Phase),
		scheduled,
	}
	ours = append(ours, resizeConditions(box, pod)...)
	var result []corev1.PodCondition
	for _, condition := range old.Conditions {
		if !ownCondition(condition.Type) {
			result = append(result, condition)
		}
	}
	for _, condition := range ours {
		condition.LastTransitionTime = stamp(s.Now)
		if _, before := podutil.GetPodCondition(old, condition.Type); before != nil {
			condition.LastProbeTime = before.LastProbeTime
			if before.Status == condition.Status {
				condition.LastTransitionTime = before.LastTransitionTime
			}
		}
		result = append(result, condition)
	}
	return result
}

// ownCondition tells whether kubelets write a condition; all others are somebody else's.
func ownCondition(kind corev1.PodConditionType) bool {
	switch kind {
	case corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
		corev1.PodScheduled, corev1.PodResizePending, corev1.PodResizeInProgress:
		return true
	}
	return false
}

// resizeConditions are there only while a change of resources is refused or on its way.
func resizeConditions(box Sandbox, pod *corev1.Pod) []corev1.PodCondition {
	switch {
	case box.Resize.Pending != "":
		return []corev1.PodCondition{{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
			Reason: box.Resize.Pending, Message: box.Resize.Message,
		}}
	case !box.Resize.Due.IsZero():
		return []corev1.PodCondition{{
			Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
		}}
	}
	return nil
}

// containerStatus reports one container.
func containerStatus(box *Sandbox, s Situation, spec *corev1.Container) corev1.ContainerStatus {
	entry := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, VolumeMounts: volumeMounts(spec), Started: new(false)}
	c := box.container(spec.Name)
	if c == nil {
		entry.State.Waiting = &corev1.ContainerStateWaiting{Reason: reasonCreating}
		if len(s.Pod.Spec.InitContainers) > 0 {
			entry.State.Waiting.Reason = reasonInitializing
		}
		if box.Stopped || terminal(box.Phase) {
			entry.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "ContainerStatusUnknown", ExitCode: killedCode,
				Message: "The container could not be located when the pod was terminated",
			}}
		}
		return entry
	}
	entry.RestartCount = c.Restarts
	entry.ContainerID = c.ID
	entry.Ready = c.ready(s.Now)
	entry.Started = new(c.Does == running)
	if c.ran() {
		img := resolve(c.RanImage)
		entry.Image, entry.ImageID = img.name, img.id
		entry.Resources = c.Actual.DeepCopy()
		entry.AllocatedResources = c.Allocated.Requests.DeepCopy()
	}
	setState(&entry, c)
	return entry
}

// setState fills in the state and the last termination of a container.
func setState(entry *corev1.ContainerStatus, c *Container) {
	switch {
	case c.Does == running:
		entry.State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(c.Since)}
		entry.LastTerminationState.Terminated = c.Last
	case c.Does == exited && c.Reason == "":
		entry.State.Terminated = c.Last
		entry.LastTerminationState.Terminated = c.Before
	default:
		entry.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.Reason, Message: c.Message}
		entry.LastTerminationState.Terminated = c.Last
	}
}

func volumeMounts(spec *corev1.Container) []corev1.VolumeMountStatus {
	var mounts []corev1.VolumeMountStatus
	for _, mount := range spec.VolumeMounts {
		entry := corev1.VolumeMountStatus{Name: mount.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly}
		if mount.ReadOnly {
			entry.RecursiveReadOnly = new(corev1.RecursiveReadOnlyDisabled)
		}
		mounts = append(mounts, entry)
	}
	return mounts
}

// stamp is a time as the API keeps it: to the second.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
