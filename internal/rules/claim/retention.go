package claim

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DeletedWith is the object along with which a claim is deleted.
type DeletedWith int

const (
	// DeletedWithNothing means that the claim outlives both the workload and the Pod.
	DeletedWithNothing DeletedWith = iota
	// DeletedWithWorkload means that the claim is deleted along with the workload.
	DeletedWithWorkload
	// DeletedWithPod means that the claim is deleted along with its Pod.
	DeletedWithPod
)

// Retention says when claims are deleted.
type Retention struct {
	// WithWorkload has claims deleted along with the workload, and WithPod along with a Pod that is not wanted any more.
	WithWorkload, WithPod bool
}

// DeletedWith returns what a claim is deleted along with, where its Pod is wanted or not. A Pod that is wanted never takes its claims
// along.
func (r Retention) DeletedWith(wanted bool) DeletedWith {
	switch {
	case !wanted && r.WithPod:
		return DeletedWithPod
	case r.WithWorkload:
		return DeletedWithWorkload
	default:
		return DeletedWithNothing
	}
}

// References are the two owners that a claim may have by our doing. The Pod has no UID where there is none.
type References struct {
	Workload, Pod metav1.OwnerReference
}

// OwnersFor returns the owner references by which the garbage collector deletes the claim along with an object, and whether the claim
// has others. Where somebody else controls the claim, foreign is true and all that is ours is taken off. A reference to a former
// workload of our name stays as it is, and so does the whole list then: the garbage collector is about to delete the claim.
func OwnersFor(have []metav1.OwnerReference, with DeletedWith, by References) (want []metav1.OwnerReference, changed, foreign bool) {
	isOurs := func(r metav1.OwnerReference) bool { return isSame(r, by.Workload) || isSame(r, by.Pod) }
	for _, r := range have {
		if isOurs(r) && r.UID != by.Workload.UID && !isSame(r, by.Pod) {
			return have, false, false
		}
		if r.Controller != nil && *r.Controller && !isOurs(r) {
			foreign = true
		}
	}
	want = slices.DeleteFunc(slices.Clone(have), isOurs)
	switch {
	case foreign:
	case with == DeletedWithWorkload:
		want = append(want, by.Workload)
	case with == DeletedWithPod && by.Pod.UID != "":
		want = append(want, by.Pod)
	}
	return want, !equality.Semantic.DeepEqual(sorted(have), sorted(want)), foreign
}

// IsGarbage reports whether the garbage collector is about to delete the claim of a Pod that is not there: because it is to go along
// with that Pod, or with a former workload of our name. Nothing may use it any more.
func IsGarbage(have []metav1.OwnerReference, by References) bool {
	return slices.ContainsFunc(have, func(r metav1.OwnerReference) bool {
		return isSame(r, by.Pod) || isSame(r, by.Workload) && r.UID != by.Workload.UID
	})
}

// isSame reports whether two references are to objects of the same kind and name, be it one that has replaced the other.
func isSame(a, b metav1.OwnerReference) bool {
	group := func(r metav1.OwnerReference) string {
		version, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil {
			return r.APIVersion
		}
		return version.Group
	}
	return a.Kind == b.Kind && a.Name == b.Name && group(a) == group(b)
}

func sorted(references []metav1.OwnerReference) []metav1.OwnerReference {
	out := slices.Clone(references)
	slices.SortFunc(out, func(a, b metav1.OwnerReference) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

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

// IsExpanded reports whether nothing is left to do for the claim's size before its Pod is updated: it has it, or gets it when the Pod
// starts anew.
func IsExpanded(c, template *corev1.PersistentVolumeClaim) bool {
	if !IsCompatible(c, template) {
		return false
	}
	return IsReady(c) || slices.ContainsFunc(c.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return condition.Type == corev1.PersistentVolumeClaimFileSystemResizePending && condition.Status == corev1.ConditionTrue
	})
}
