package claim

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Keeper is what a claim goes along with when that is deleted.
type Keeper int

const (
	// Nobody keeps the claim: it outlives both the workload and the Pod.
	Nobody Keeper = iota
	// TheWorkload has the claim go along with the workload.
	TheWorkload
	// ThePod has the claim go along with its Pod.
	ThePod
)

// Retention says when claims are deleted.
type Retention struct {
	// WithWorkload has claims go along with the workload, and WithPod along with a Pod that is not wanted any more.
	WithWorkload, WithPod bool
}

// Keeper returns what a claim is to go along with, where its Pod is wanted or not. A Pod that is wanted never takes its claims along.
func (r Retention) Keeper(wanted bool) Keeper {
	switch {
	case !wanted && r.WithPod:
		return ThePod
	case r.WithWorkload:
		return TheWorkload
	default:
		return Nobody
	}
}

// References are the two owners that a claim may have by our doing. The Pod has no UID where there is none.
type References struct {
	Workload, Pod metav1.OwnerReference
}

// Kept returns the owner references that the claim is to have so that it goes along with its keeper, and whether they are not those that it has.
// Where somebody else controls the claim, foreign is true and all that is ours is taken off. A reference to a former workload of our name stays as
// it is, and so does the whole list then: the garbage collector is about to delete the claim.
func Kept(have []metav1.OwnerReference, keeper Keeper, by References) (want []metav1.OwnerReference, changed, foreign bool) {
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
	case keeper == TheWorkload:
		want = append(want, by.Workload)
	case keeper == ThePod && by.Pod.UID != "":
		want = append(want, by.Pod)
	}
	return want, !equality.Semantic.DeepEqual(sorted(have), sorted(want)), foreign
}

// IsDoomed reports whether the garbage collector is about to delete the claim of a Pod that is not there: because it is to go along with that Pod,
// or with a former workload of our name. Nothing may use it any more.
func IsDoomed(have []metav1.OwnerReference, by References) bool {
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
	slices.SortFunc(out, func(a, b metav1.OwnerReference) int {
		switch {
		case a.UID < b.UID:
			return -1
		case a.UID > b.UID:
			return 1
		default:
			return 0
		}
	})
	return out
}
