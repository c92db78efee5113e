// Package v1beta1 is the hub and storage version of rollouts.kruise.io.
//
// +kubebuilder:object:generate=true
// +groupName=rollouts.kruise.io
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "rollouts.kruise.io", Version: "v1beta1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Rollout{}, &RolloutList{}, &BatchRelease{}, &BatchReleaseList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
