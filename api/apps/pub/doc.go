// Package pub holds the types that several kinds and both API versions of apps.kruise.io share:
// lifecycle hooks, the in-place update strategy and its record on a Pod, and the order of updates.
//
// +kubebuilder:object:generate=true
package pub
