package sidecar

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Requirements returns what a selected Pod's labels meet, and what those of its namespace do; none of the latter where all namespaces are selected.
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
