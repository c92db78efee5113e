// Package v1alpha1 is the older spelling of Rollout and BatchRelease, which is converted to v1beta1, losslessly both ways, and the only one
// of TrafficRouting and RolloutHistory.
//
// +kubebuilder:object:generate=true
// +groupName=rollouts.kruise.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "rollouts.kruise.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Rollout{}, &RolloutList{}, &BatchRelease{}, &BatchReleaseList{},
		&TrafficRouting{}, &TrafficRoutingList{}, &RolloutHistory{}, &RolloutHistoryList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
