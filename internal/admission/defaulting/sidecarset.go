package defaulting

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/patch"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// SidecarSet returns the handler that fills in the defaults and the hashes of SidecarSets of both versions.
func SidecarSet() admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, from admission.Request) admission.Response {
		var failed error
		var response admission.Response
		switch {
		case from.SubResource != "" || from.Operation == admissionv1.Delete:
			return admission.Allowed("")
		case from.Kind.Version == v1beta1.GroupVersion.Version:
			response = respond(from, func(set, _ *v1beta1.SidecarSet) { failed = defaults.SidecarSet(set) })
		case from.Kind.Version == v1alpha1.GroupVersion.Version:
			response = respond(from, func(set, old *v1alpha1.SidecarSet) { failed = defaults.SidecarSetV1alpha1(set, old) })
		default:
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("there is no version %s of SidecarSet here", from.Kind.Version))
		}
		if failed != nil {
			return admission.Errored(http.StatusInternalServerError, failed)
		}
		return response
	})
}

// respond answers with what fill changes.
func respond[T any, P object[T]](from admission.Request, fill func(set, old P)) admission.Response {
	raw, set, err := decode[T](from.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	if P(set).GetDeletionTimestamp() != nil {
		return admission.Allowed("") // nothing may stand in the way of its finalizers
	}
	var old P
	if from.Operation == admissionv1.Update {
		_, was, err := decode[T](from.OldObject)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old object: %w", err))
		}
		old = was
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
	}
	fill(set, old)
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the object: %w", err))
	}
	return admission.Patched("", patch.Between(raw, before, after)...)
}

func decode[T any](from runtime.RawExtension) (map[string]any, *T, error) {
	u, err := request.Parse(from)
	if err != nil {
		return nil, nil, err
	}
	into, err := request.Decode[T](u)
	return u.Object, into, err
}
