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

// BroadcastJob returns the handler that fills in the defaults of BroadcastJobs of both versions.
func BroadcastJob(o defaults.Options) admission.Handler {
	return eitherVersion(
		func(job, old *v1beta1.BroadcastJob) { defaults.BroadcastJob(job, old, o) },
		func(job, old *v1alpha1.BroadcastJob) { defaults.BroadcastJobV1alpha1(job, old, o) },
	)
}

// AdvancedCronJob returns the handler that fills in the defaults of AdvancedCronJobs of both versions.
func AdvancedCronJob(o defaults.Options) admission.Handler {
	return eitherVersion(
		func(job, old *v1beta1.AdvancedCronJob) { defaults.AdvancedCronJob(job, old, o) },
		func(job, old *v1alpha1.AdvancedCronJob) { defaults.AdvancedCronJobV1alpha1(job, old, o) },
	)
}

// eitherVersion returns the handler that fills in the defaults of a kind, by the version that it is written in.
func eitherVersion[H, S any, PH object[H], PS object[S]](hub func(object, old PH), spoke func(object, old PS)) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, from admission.Request) admission.Response {
		switch {
		case from.SubResource != "" || from.Operation == admissionv1.Delete:
			return admission.Allowed("")
		case from.Kind.Version == v1beta1.GroupVersion.Version:
			return respond(from, hub)
		case from.Kind.Version == v1alpha1.GroupVersion.Version:
			return respond(from, spoke)
		}
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("there is no version %s of %s here", from.Kind.Version, from.Kind.Kind))
	})
}
