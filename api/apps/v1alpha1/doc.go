// Package v1alpha1 is the older spelling of apps.kruise.io. It is served and converted to v1beta1, losslessly both ways.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
