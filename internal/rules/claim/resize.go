package claim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// HasShape reports whether a claim differs from its template in size at most: in what no write can change.
func HasShape(c, template *corev1.PersistentVolumeClaim) bool {
	class, wanted := c.Spec.StorageClassName, template.Spec.StorageClassName
	if class != nil && wanted != nil && *class != *wanted {
		return false
	}
	return slices.Equal(c.Spec.AccessModes, template.Spec.AccessModes)
}

// IsCompatible reports whether the claim has the template's shape and asks for its size at least.
func IsCompatible(c, template *corev1.PersistentVolumeClaim) bool {
	asks, wanted := c.Spec.Resources.Requests[corev1.ResourceStorage], template.Spec.Resources.Requests[corev1.ResourceStorage]
	return HasShape(c, template) && asks.Cmp(wanted) >= 0
}

// IsReady reports whether the claim has the size that it asks for.
func IsReady(c *corev1.PersistentVolumeClaim) bool {
	has, asks := c.Status.Capacity[corev1.ResourceStorage], c.Spec.Resources.Requests[corev1.ResourceStorage]
	return has.Cmp(asks) >= 0
}

// IsExpanded reports whether nothing is left to do for the claim's size before its Pod is updated: it has it, or gets it when the Pod starts anew.
func IsExpanded(c, template *corev1.PersistentVolumeClaim) bool {
	if !IsCompatible(c, template) {
		return false
	}
	return IsReady(c) || slices.ContainsFunc(c.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return condition.Type == corev1.PersistentVolumeClaimFileSystemResizePending && condition.Status == corev1.ConditionTrue
	})
}
