package imagepulljob

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
)

// placesOfPods returns the nodes of the selected Pods, in the order in which the workload that controls the job updates them: where the update comes
// first the image is needed first.
func (v *Survey) placesOfPods() (selection, error) {
	var pods []*corev1.Pod
	for _, p := range v.Pods {
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if p.DeletionTimestamp == nil && !ended && p.Spec.NodeName != "" {
			pods = append(pods, p)
		}
	}
	pods, err := v.Workload.sort(pods)
	if err != nil {
		return selection{}, fmt.Errorf("ordering Pods: %w", err)
	}
	out := selection{names: map[string]int{}}
	for i, p := range pods {
		if _, known := out.names[p.Spec.NodeName]; !known {
			out.names[p.Spec.NodeName] = i
		}
	}
	return out, nil
}

func (w Workload) sort(pods []*corev1.Pod) ([]*corev1.Pod, error) {
	switch {
	case w.CloneSet != nil:
		var s order.Strategy
		if rolling := w.CloneSet.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
			s.Priority, s.Scatter = rolling.PriorityStrategy, rolling.ScatterStrategy
		}
		return order.Sort(pods, pods, s)
	case w.StatefulSet != nil:
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(number(b), number(a)) })
		if rolling := w.StatefulSet.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.UnorderedUpdate != nil {
			return pods, order.ByPriority(pods, rolling.UnorderedUpdate.PriorityStrategy)
		}
	case w.DaemonSet != nil:
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(b.Spec.NodeName, a.Spec.NodeName) })
	default:
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Spec.NodeName, b.Spec.NodeName) })
	}
	return pods, nil
}

// number returns the number of a Pod of a StatefulSet; -1 for a Pod without one.
func number(p *corev1.Pod) int32 {
	if _, n, ok := ordinal.Split(p.Name); ok {
		return n
	}
	return -1
}
