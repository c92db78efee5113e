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

// DaemonSet returns the handler that fills in the defaults of DaemonSets of both versions.
func DaemonSet() admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, from admission.Request) admission.Response {
		switch {
		case from.SubResource != "" || from.Operation == admissionv1.Delete:
			return admission.Allowed("")
		case from.Kind.Version == v1beta1.GroupVersion.Version:
			return respond(from, func(set, _ *v1beta1.DaemonSet) { defaults.DaemonSet(set) })
		case from.Kind.Version == v1alpha1.GroupVersion.Version:
			return respond(from, func(set, _ *v1alpha1.DaemonSet) { defaults.DaemonSetV1alpha1(set) })
		}
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("there is no version %s of DaemonSet here", from.Kind.Version))
	})
}
