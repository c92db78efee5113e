package simnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Recover rebuilds the Sandbox of a Pod that was on its node before the simulator started, from what was reported of it
// then. Nothing restarts for it: what ran keeps running, what was on its way arrives now.
func Recover(s Situation) Sandbox {
	pod := s.Pod
	rules, _ := rulesFor(pod, s.Defaults) // Advance reports what cannot be read
	st := &step{Situation: s, rules: rules}
	box := Sandbox{
		IP: pod.Status.PodIP, Admitted: pod.Status.StartTime.Time, Up: s.Now, Phase: pod.Status.Phase, Killed: rules.kill,
	}
	specs := map[string]*corev1.Container{}
	kinds := map[string]life{}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		sidecar := podutil.IsRestartableInitContainer(container)
		specs[container.Name], kinds[container.Name] = container, life{sidecar: sidecar, init: !sidecar}
	}
	for i := range pod.Spec.Containers {
		specs[pod.Spec.Containers[i].Name] = &pod.Spec.Containers[i]
	}
	for i := range pod.Spec.EphemeralContainers {
		container := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		specs[container.Name], kinds[container.Name] = &container, life{ephemeral: true}
	}
	for _, entries := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range entries {
			if spec := specs[entries[i].Name]; spec != nil {
				if c := st.recoverContainer(&entries[i], spec, kinds[spec.Name]); c.ran() || c.Reason != reasonInitializing {
					box.Containers = append(box.Containers, c)
				}
			}
		}
	}
	return box
}

func (st *step) recoverContainer(entry *corev1.ContainerStatus, spec *corev1.Container, kind life) Container {
	c := Container{
		Name: spec.Name, Image: spec.Image, Does: waiting, Reason: reasonCreating, Since: st.Now, Next: st.Now,
		Restarts: entry.RestartCount, ID: entry.ContainerID, Last: entry.LastTerminationState.Terminated,
		Allocated: spec.Resources, Actual: spec.Resources,
	}
	if entry.ImageID != "" {
		c.RanImage = spec.Image
		if running := resolve(spec.Image); running.id != entry.ImageID {
			// It ran another image than it is to run now: the difference is what makes Advance restart it.
			c.RanImage, c.Image = entry.Image, entry.Image
		}
	}
	if entry.Resources != nil {
		c.Allocated, c.Actual = *entry.Resources, *entry.Resources
	}
	switch {
	case entry.State.Running != nil:
		c.Does, c.Since, c.Reason = running, entry.State.Running.StartedAt.Time, ""
		c.Next, c.Code = st.ends(&c, resolve(c.RanImage), kind)
		c.Next = since(c.Next, c.Since, st.Now)
		if c.ReadyAt = st.readyAt(&c, resolve(c.RanImage)); entry.Ready {
			c.ReadyAt = c.Since
		}
	case entry.State.Terminated != nil:
		c.Does, c.Reason, c.Next = exited, "", time.Time{}
		c.Code, c.Since, c.Before = entry.State.Terminated.ExitCode, entry.State.Terminated.FinishedAt.Time, c.Last
		c.Last = entry.State.Terminated
		// Exited for good, or on its way to a restart that the simulator's end cut off.
		if !terminal(st.Pod.Status.Phase) && (c.Code == 0 && !kind.init && st.restarts(&c, kind) || c.Code != 0 && st.restarts(&c, kind)) {
			c.Next = st.Now
		}
	case entry.State.Waiting != nil:
		c.Reason, c.Message = entry.State.Waiting.Reason, entry.State.Waiting.Message
	}
	return c
}

// since moves an end that was reckoned from now to where it belongs, reckoned from the start, but not into the past.
func since(end, start, now time.Time) time.Time {
	if end.IsZero() {
		return end
	}
	if end = start.Add(end.Sub(now)); end.Before(now) {
		return now
	}
	return end
}
