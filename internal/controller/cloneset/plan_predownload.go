package cloneset

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/predownload"
)

// preDownload has the images of an update pulled before the Pods are updated in place.
func preDownload(v *Survey, b *plan.Builder) error {
	if !v.Options.PreDownload {
		return nil
	}
	tuning := predownload.Annotated(v.Set.Annotations, int(v.replicas()))
	if rolling := v.Set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		tuning = tuning.Over(rolling.InPlaceUpdateStrategy)
	}
	ready := 0
	for _, m := range v.fleet.members {
		if m.updated && pod.IsReady(m.pod) {
			ready++
		}
	}
	update, current := v.history.Update, v.history.Current
	return rollout.PreDownload{
		Rollout: predownload.Rollout{
			Update: update, Old: []*appsv1.ControllerRevision{current}, Pointless: v.pointless, UpdatedReady: ready, Tuning: tuning,
		},
		Workload: predownload.Workload{
			Namespace: v.Set.Namespace, Selector: v.Set.Spec.Selector, Owner: *metav1.NewControllerRef(v.Set, kind()),
		},
		History: v.history,
		Done:    current.Name == update.Name,
		Jobs:    v.PullJobs,
		Taken:   v.Taken,
	}.Plan(b)
}

// pointless says why pulling images ahead would gain nothing; empty where it would gain something.
func (v *Survey) pointless() string {
	_, refusal := inplace.Diff(v.history.Current, v.history.Update, v.Options.InPlace)
	return predownload.Pace{
		InPlace:        v.inPlace() && !v.onDelete() && refusal == nil,
		Replicas:       int(v.replicas()),
		Partition:      v.limits.Partition,
		MaxUnavailable: v.limits.MaxUnavailable,
	}.Pointless()
}
