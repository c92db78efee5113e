package defaulting

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
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
