package sidecar

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
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
func (s Selection) MatchesLabels(of map[string]string) bool {
	return s.pods != nil && s.pods.Matches(labels.Set(of))
}

// MatchesNamespace reports whether a namespace with these labels is selected.
func (s Selection) MatchesNamespace(namespace map[string]string) bool {
	return s.namespaces == nil || s.namespaces.Matches(labels.Set(namespace))
}

// Requirements returns what a selected Pod's labels meet, and what those of its namespace do; none of the latter where all namespaces are
// selected.
func (s Selection) Requirements() (pods, namespaces labels.Requirements) {
	if s.pods != nil {
		pods, _ = s.pods.Requirements()
	}
	if s.namespaces != nil {
		namespaces, _ = s.namespaces.Requirements()
	}
	return pods, namespaces
}

// NamesValues reports whether a requirement on a label is met only by the values that it names.
func NamesValues(r *labels.Requirement) bool {
	return r.Operator() == selection.In || r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals
}

// MayShare reports whether one Pod could be selected by both SidecarSets. It is false only where that can be excluded by the selectors
// alone.
func MayShare(a, b *v1beta1.SidecarSetSpec) bool {
	return pod.SelectorsOverlap(a.Selector, b.Selector) && pod.SelectorsOverlap(a.NamespaceSelector, b.NamespaceSelector)
}
