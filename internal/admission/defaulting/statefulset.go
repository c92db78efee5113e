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

// StatefulSet returns the handler that fills in the defaults of StatefulSets. Both versions have the same fields.
func StatefulSet(o defaults.Options) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, from admission.Request) admission.Response {
		switch {
		case from.SubResource != "" || from.Operation == admissionv1.Delete:
			return admission.Allowed("")
		case from.Kind.Version != v1beta1.GroupVersion.Version && from.Kind.Version != v1alpha1.GroupVersion.Version:
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("there is no version %s of StatefulSet here", from.Kind.Version))
		}
		return respond(from, func(set, old *v1beta1.StatefulSet) { defaults.StatefulSet(set, old, o) })
	})
}
