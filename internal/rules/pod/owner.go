package pod

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

// Ownership says which Pods belong to a workload.
type Ownership struct {
	// Owned Pods are controlled by the workload.
	Owned []*corev1.Pod
	// Release are controlled by the workload, but its selector does not match them any more.
	Release []*corev1.Pod
	// Adoptable have no controller, and the selector matches them.
	Adoptable []*corev1.Pod
}

// OwnershipOf classifies Pods for the workload with this UID and selector. A Pod that is being deleted is neither released nor adopted:
// it is too late for either.
func OwnershipOf(controller types.UID, selector labels.Selector, pods []*corev1.Pod) Ownership {
	var o Ownership
	for _, p := range pods {
		matches := selector.Matches(labels.Set(p.Labels))
		reference := metav1.GetControllerOfNoCopy(p)
		switch {
		case reference == nil:
			if matches && p.DeletionTimestamp == nil {
				o.Adoptable = append(o.Adoptable, p)
			}
		case reference.UID != controller:
		case matches || p.DeletionTimestamp != nil:
			o.Owned = append(o.Owned, p)
		default:
			o.Release = append(o.Release, p)
		}
	}
	return o
}
