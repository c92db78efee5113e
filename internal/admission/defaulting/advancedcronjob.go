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

// AdvancedCronJob returns the handler that fills in the defaults of AdvancedCronJobs of both versions.
func AdvancedCronJob(o defaults.Options) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, from admission.Request) admission.Response {
		switch {
		case from.SubResource != "" || from.Operation == admissionv1.Delete:
			return admission.Allowed("")
		case from.Kind.Version == v1beta1.GroupVersion.Version:
			return respond(from, func(job, old *v1beta1.AdvancedCronJob) { defaults.AdvancedCronJob(job, old, o) })
		case from.Kind.Version == v1alpha1.GroupVersion.Version:
			return respond(from, func(job, old *v1alpha1.AdvancedCronJob) { defaults.AdvancedCronJobV1alpha1(job, old, o) })
		}
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("there is no version %s of AdvancedCronJob here", from.Kind.Version))
	})
}
