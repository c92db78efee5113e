package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/predownload"
)

// preDownload has the images of an update pulled before the Pods are updated, in place or not: the nodes stay the same. All older revisions count
// as what Pods may be at.
func (v *Survey) preDownload(b *plan.Builder) error {
	if !v.Options.PreDownload {
		return nil
	}
	ready, done := 0, true
	for _, p := range v.places {
		if !p.verdict.Run {
			continue
		}
		updated := len(p.members) > 0 && p.members[0].updated
		done = done && updated
		if updated && p.members[0].ready {
			ready++
		}
	}
	var old []*appsv1.ControllerRevision
	for _, rev := range v.history.All {
		if !v.history.MeansUpdate(rev) {
			old = append(old, rev)
		}
	}
	return rollout.PreDownload{
		Rollout: predownload.Rollout{
			Update: v.history.Update, Old: old, Pointless: v.pointless, UpdatedReady: ready, Tuning: predownload.Annotated(v.Set.Annotations, v.desired),
		},
		Workload: predownload.Workload{Namespace: v.Set.Namespace, Selector: v.Set.Spec.Selector, Owner: ownerReference(v.Set)},
		History:  v.history,
		Done:     done || len(old) == 0,
		Jobs:     v.PullJobs,
		Taken:    v.Taken,
	}.Plan(b)
}

// pointless says why pulling images ahead would gain nothing; empty where it would gain something.
func (v *Survey) pointless() string {
	if !v.onDelete() && v.limits.Partition == 0 && v.limits.MaxUnavailable >= v.desired {
		return "all nodes are updated at once"
	}
	return ""
}
