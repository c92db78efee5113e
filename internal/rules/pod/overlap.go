package pod

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// SelectorsOverlap reports whether some labels could match both selectors, of which nil matches everything.
func SelectorsOverlap(a, b *metav1.LabelSelector) bool {
	left, right := requirements(a), requirements(b)
	for i := range left {
		for j := range right {
			if left[i].Key() == right[j].Key() && exclude(&left[i], &right[j]) {
				return false
			}
		}
	}
	return true
}

// SelectSameKeys reports whether both selectors are about the same labels, whatever values they want.
func SelectSameKeys(a, b *metav1.LabelSelector) bool { return keysOf(a).Equal(keysOf(b)) }

func keysOf(s *metav1.LabelSelector) sets.Set[string] {
	found := sets.New[string]()
	for _, r := range requirements(s) {
		found.Insert(r.Key())
	}
	return found
}

// requirements returns nothing for a selector that can't be read: then nothing can be excluded by it.
func requirements(s *metav1.LabelSelector) labels.Requirements {
	if s == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	found, _ := selector.Requirements()
	return found
}

// exclude reports whether no value of their label, nor its absence, meets both requirements.
func exclude(a, b *labels.Requirement) bool {
	absentA, valuesA, allButA := meaning(a)
	absentB, valuesB, allButB := meaning(b)
	if absentA && absentB {
		return false
	}
	switch {
	case allButA && allButB:
		return false // there are always further values
	case allButA:
		return valuesB.Difference(valuesA).Len() == 0
	case allButB:
		return valuesA.Difference(valuesB).Len() == 0
	default:
		return valuesA.Intersection(valuesB).Len() == 0
	}
}

// meaning says whether a requirement is met by the absence of its label, and by which values: those given, or all but those.
func meaning(r *labels.Requirement) (absent bool, values sets.Set[string], allBut bool) {
	values = sets.New(r.ValuesUnsorted()...)
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return false, values, false
	case selection.DoesNotExist:
		return true, sets.New[string](), false
	case selection.Exists:
		return false, sets.New[string](), true
	default: // NotIn: the API has no other operators for labels
		return true, values, true
	}
}
