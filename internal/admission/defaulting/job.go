package defaulting

import (
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// BroadcastJob returns the handler that fills in the defaults of BroadcastJobs of both versions.
func BroadcastJob(o defaults.Options) admission.Handler {
	return inHub(func(job, old *v1beta1.BroadcastJob) { defaults.BroadcastJob(job, old, o) })
}

// AdvancedCronJob returns the handler that fills in the defaults of AdvancedCronJobs of both versions.
func AdvancedCronJob(o defaults.Options) admission.Handler {
	return inHub(func(job, old *v1beta1.AdvancedCronJob) { defaults.AdvancedCronJob(job, old, o) })
}
