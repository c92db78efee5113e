// Package v1alpha1 is the older spelling of policy.kruise.io. It is served and converted to v1beta1, losslessly both ways.
//
// +kubebuilder:object:generate=true
// +groupName=policy.kruise.io
package v1alpha1
