// Package owner decides which Pods belong to a workload: those that it controls and that its selector still matches.
package owner

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// ErrSelectsAll is the error of a selector that would select every Pod of the namespace.
var ErrSelectsAll = errors.New("reading selector: it is empty, which would select every Pod of the namespace")

// Selector reads the selector of a workload.
func Selector(of *metav1.LabelSelector) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return nil, fmt.Errorf("reading selector: %w", err)
	}
	if selector.Empty() {
		return nil, ErrSelectsAll
	}
	return selector, nil
}

// Split sorts Pods by whom they belong to.
type Split struct {
	// Owned Pods are controlled by the workload.
	Owned []*corev1.Pod
	// Release are controlled by the workload, but its selector does not match them any more.
	Release []*corev1.Pod
	// Adoptable are controlled by nobody, and the selector matches them.
	Adoptable []*corev1.Pod
}

// Of sorts Pods from the view of the workload with this UID and selector. A Pod that is being deleted is neither released nor adopted: it is
// too late for either.
func Of(controller types.UID, selector labels.Selector, pods []*corev1.Pod) Split {
	var s Split
	for _, p := range pods {
		matches := selector.Matches(labels.Set(p.Labels))
		reference := metav1.GetControllerOfNoCopy(p)
		switch {
		case reference == nil:
			if matches && p.DeletionTimestamp == nil {
				s.Adoptable = append(s.Adoptable, p)
			}
		case reference.UID != controller:
		case matches || p.DeletionTimestamp != nil:
			s.Owned = append(s.Owned, p)
		default:
			s.Release = append(s.Release, p)
		}
	}
	return s
}
