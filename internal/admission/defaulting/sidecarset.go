package defaulting

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// SidecarSet returns the handler that fills in the defaults and the hashes of SidecarSets of both versions.
func SidecarSet() admission.Handler {
	return kind[v1beta1.SidecarSet, *v1beta1.SidecarSet]{
		hub:   v1beta1.GroupVersion,
		fill:  func(_ context.Context, set, _ *v1beta1.SidecarSet) error { return defaults.SidecarSet(set) },
		older: sidecarSetFirstSpelling,
	}.handler()
}

// sidecarSetFirstSpelling copies the fields of the first releases to their successors. What they were before is not told by the hub
// version.
func sidecarSetFirstSpelling(set, old *unstructured.Unstructured) error {
	now, err := request.Decode[v1alpha1.SidecarSet](set)
	if err != nil {
		return unreadableError{err}
	}
	var was *v1alpha1.SidecarSet
	if old != nil {
		if was, err = request.Decode[v1alpha1.SidecarSet](old); err != nil {
			return unreadableError{err}
		}
	}
	defaults.SidecarSetFirstSpelling(now, was)
	strategy, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&now.Spec.UpdateStrategy)
	if err != nil {
		return err
	}
	return unstructured.SetNestedMap(set.Object, strategy, "spec", "updateStrategy")
}
