package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// NewNode stands for the node of a Pod that is created in a forecast and may be put on any.
const NewNode = "(any)"

// runPods lets Pods start and become ready, and reports whether one has changed. What is on its way out goes. What was broken when the
// forecast began stays so, until its containers change; its name is taken off then.
func (w *World) runPods(broken map[string]bool) (changed bool) {
	for _, p := range w.pods() {
		switch {
		case p.DeletionTimestamp != nil:
			if len(p.Finalizers) == 0 {
				w.delete(p)
				changed = true
			}
		case w.idle[p.UID] == p || pod.IsFinished(p) || len(p.Spec.SchedulingGates) > 0:
		case broken[p.Name] && !differs(p):
		default:
			delete(broken, p.Name)
			after := versionOf(p).(*corev1.Pod)
			after.Status = *p.Status.DeepCopy()
			w.run(after)
			if sameStatus(p, after) {
				w.idle[p.UID] = p
				continue
			}
			w.put(after)
			changed = true
		}
	}
	return changed
}

// differs reports whether a container of a Pod runs another image than its spec says.
func differs(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		status := pod.ContainerStatus(p, c.Name)
		return status == nil || status.Image != c.Image
	})
}

// run gives a Pod the status that its kubelet would report in the end.
func (w *World) run(p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		if p.Spec.NodeName = nodefit.NodeOf(p); p.Spec.NodeName == "" {
			p.Spec.NodeName = NewNode
		}
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.ObservedGeneration = p.Generation
	for i := range p.Spec.Containers {
		w.runContainer(p, &p.Spec.Containers[i])
	}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady} {
		pod.SetCondition(p, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}, w.Now)
	}
	ready := corev1.ConditionTrue
	for _, gate := range p.Spec.ReadinessGates {
		c := pod.Condition(p, gate.ConditionType)
		ours := gate.ConditionType == pub.InPlaceUpdateReady || gate.ConditionType == pub.KruisePodReady
		if c == nil && !ours { // whoever opens it does so for each Pod
			pod.SetCondition(p, corev1.PodCondition{Type: gate.ConditionType, Status: corev1.ConditionTrue}, w.Now)
			continue
		}
		if c == nil || c.Status != corev1.ConditionTrue {
			ready = corev1.ConditionFalse
		}
	}
	pod.SetCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: ready}, w.Now)
}

func (w *World) runContainer(p *corev1.Pod, c *corev1.Container) {
	status := pod.ContainerStatus(p, c.Name)
	if status == nil {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name})
		status = &p.Status.ContainerStatuses[len(p.Status.ContainerStatuses)-1]
	}
	status.Resources = c.Resources.DeepCopy()
	if status.Image == c.Image && status.Ready {
		return
	}
	if status.Image != "" && status.Image != c.Image {
		status.RestartCount++
	}
	if status.Image != c.Image {
		status.Image, status.ImageID = c.Image, "forecast:"+c.Image
	}
	status.Ready, status.Started = true, ptr.To(true)
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.Now)}}
}

// sameStatus reports whether nothing but times differs that nobody waits for.
func sameStatus(a, b *corev1.Pod) bool {
	if a.Spec.NodeName != b.Spec.NodeName || a.Status.Phase != b.Status.Phase ||
		a.Status.ObservedGeneration != b.Status.ObservedGeneration ||
		len(a.Status.ContainerStatuses) != len(b.Status.ContainerStatuses) || len(a.Status.Conditions) != len(b.Status.Conditions) {
		return false
	}
	for i := range a.Status.ContainerStatuses {
		x, y := &a.Status.ContainerStatuses[i], &b.Status.ContainerStatuses[i]
		if x.Image != y.Image || x.Ready != y.Ready {
			return false
		}
	}
	for i := range a.Status.Conditions {
		if a.Status.Conditions[i].Status != b.Status.Conditions[i].Status {
			return false
		}
	}
	return true
}
