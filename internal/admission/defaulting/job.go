package defaulting

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// BroadcastJob returns the handler that fills in the defaults of BroadcastJobs of both versions.
func BroadcastJob(o defaults.Options) admission.Handler {
	return kind[v1beta1.BroadcastJob, *v1beta1.BroadcastJob]{
		hub: v1beta1.GroupVersion,
		fill: func(_ context.Context, job, old *v1beta1.BroadcastJob) error {
			defaults.BroadcastJob(job, old, o)
			return nil
		},
	}.handler()
}

// AdvancedCronJob returns the handler that fills in the defaults of AdvancedCronJobs of both versions.
func AdvancedCronJob(o defaults.Options) admission.Handler {
	return kind[v1beta1.AdvancedCronJob, *v1beta1.AdvancedCronJob]{
		hub: v1beta1.GroupVersion,
		fill: func(_ context.Context, job, old *v1beta1.AdvancedCronJob) error {
			defaults.AdvancedCronJob(job, old, o)
			return nil
		},
	}.handler()
}
