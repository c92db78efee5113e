package sidecar

import "k8s.io/apimachinery/pkg/labels"

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
