package sidecar

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selection says which Pods a SidecarSet selects. It is made once per change of the SidecarSet, as reading selectors takes time.
type Selection struct {
	pods labels.Selector
	// namespaces is nil where all of them are selected.
	namespaces labels.Selector
}

// Select reads the selectors of a SidecarSet. An empty one is refused: it would select everything.
func Select(selector, namespaceSelector *metav1.LabelSelector) (Selection, error) {
	var s Selection
	var err error
	if s.pods, err = metav1.LabelSelectorAsSelector(selector); err != nil {
		return Selection{}, fmt.Errorf("reading selector: %w", err)
	}
	if s.pods.Empty() {
		return Selection{}, fmt.Errorf("reading selector: it is empty, which would select every Pod")
	}
	if namespaceSelector == nil {
		return s, nil
	}
	if s.namespaces, err = metav1.LabelSelectorAsSelector(namespaceSelector); err != nil {
		return Selection{}, fmt.Errorf("reading namespaceSelector: %w", err)
	}
	if s.namespaces.Empty() {
		return Selection{}, fmt.Errorf("reading namespaceSelector: it is empty, which would select every namespace")
	}
	return s, nil
}

// NeedsNamespace reports whether the labels of the namespace matter.
func (s Selection) NeedsNamespace() bool { return s.namespaces != nil }

// MatchesLabels reports whether a Pod with these labels is selected, in a namespace that is.
func (s Selection) MatchesLabels(pod map[string]string) bool {
	return s.pods != nil && s.pods.Matches(labels.Set(pod))
}

// MatchesNamespace reports whether a namespace with these labels is selected.
func (s Selection) MatchesNamespace(namespace map[string]string) bool {
	return s.namespaces == nil || s.namespaces.Matches(labels.Set(namespace))
}
