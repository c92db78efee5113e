// Package v1beta1 is the hub and storage version of policy.kruise.io.
//
// +kubebuilder:object:generate=true
// +groupName=policy.kruise.io
package v1beta1
