package cloneset

import (
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/predownload"
)

// preDownload has the images of an update pulled before the Pods are updated in place.
func preDownload(v *Survey, b *plan.Builder) error {
	if !v.Options.PreDownload {
		return nil
	}
	ready := 0
	for _, m := range v.fleet.members {
		if m.updated && pod.IsReady(m.pod) {
			ready++
		}
	}
	return rollout.InPlace{
		Workload: predownload.Workload{Namespace: v.Set.Namespace, Selector: v.Set.Spec.Selector, Owner: ownerReference(v.Set)},
		History:  v.history, Annotations: v.Set.Annotations, Details: v.strategy.InPlaceUpdateStrategy,
		Pace: predownload.Pace{
			InPlace: v.inPlace(), Replicas: int(v.replicas()), Partition: v.limits.Partition, MaxUnavailable: v.limits.MaxUnavailable,
		},
		Options: v.Options.InPlace, UpdatedReady: ready, Jobs: v.PullJobs, Taken: v.Taken,
	}.Plan(b)
}
