// Package v1beta1 is the hub and storage version of apps.kruise.io.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1
