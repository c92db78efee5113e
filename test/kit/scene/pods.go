package scene

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// IsReady reports whether a Pod is in service.
func IsReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// PinnedTo returns the node that a Pod is for, as the workloads that have one Pod on each node say it, or else that which it runs on.
func PinnedTo(p *corev1.Pod) string {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
	}
	return p.Spec.NodeName
}
