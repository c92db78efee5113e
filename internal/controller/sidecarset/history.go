package sidecarset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

func readHistory(s Snapshot) (revision.History, error) {
	h, err := revision.Read(s.Revisions, revision.Wanted{
		Make: func(collisionCount int32) (*appsv1.ControllerRevision, error) {
			return sidecar.NewRevision(s.Set, s.Options.Namespace, collisionCount)
		},
		Owner:          *metav1.NewControllerRef(s.Set, v1beta1.GroupVersion.WithKind("SidecarSet")),
		CollisionCount: s.Set.Status.CollisionCount,
	})
	if err != nil {
		return revision.History{}, fmt.Errorf("reading the revisions: %w", err)
	}
	// A name that the user gives to what is there already goes to the revision that is there already.
	if version := s.Set.Spec.CustomVersion; version != "" && h.Update.Labels[keys.SidecarSetCustomVersion] != version {
		if h.Update.Labels == nil {
			h.Update.Labels = map[string]string{}
		}
		h.Update.Labels[keys.SidecarSetCustomVersion] = version
	}
	return h, nil
}

// trim deletes the oldest revisions beyond the limit. Unlike that of a workload the limit counts those in use, too, but they are never deleted: the
// present one, those that Pods hold, and those that new Pods are to get.
func trim(v *Survey, b *plan.Builder) {
	limit := int32(rollout.DefaultHistoryLimit)
	if v.Set.Spec.RevisionHistoryLimit != nil {
		limit = max(1, *v.Set.Spec.RevisionHistoryLimit)
	}
	surplus := len(v.Revisions) - int(limit)
	if v.history.Stored == nil {
		surplus++ // the one that is about to be created
	}
	if surplus <= 0 {
		return
	}
	live := v.liveRevisions()
	for _, rev := range revision.Stale(v.Revisions, func(rev *appsv1.ControllerRevision) bool { return live[rev.Name] }, 0) {
		if surplus == 0 {
			return
		}
		surplus--
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Tidy, Before: rev,
			What: "delete revision", Why: fmt.Sprintf("revisionHistoryLimit is %d", limit),
		})
	}
}

// liveRevisions returns the names of the revisions that are in use.
func (v *Survey) liveRevisions() map[string]bool {
	live := map[string]bool{v.history.Update.Name: true}
	for _, p := range v.Pods {
		if records, err := sidecar.RecordsIn(p, keys.SidecarSetHash); err == nil {
			live[records[v.Set.Name].ControllerRevision] = true
		}
	}
	asked := v.Set.Spec.InjectionStrategy.Revision
	if asked == nil {
		return live
	}
	if asked.RevisionName != nil {
		live[*asked.RevisionName] = true
	}
	if asked.CustomVersion != nil {
		var newest *appsv1.ControllerRevision
		for _, rev := range v.Revisions {
			if rev.Labels[keys.SidecarSetCustomVersion] == *asked.CustomVersion && (newest == nil || rev.Revision > newest.Revision) {
				newest = rev
			}
		}
		if newest != nil {
			live[newest.Name] = true
		}
	}
	return live
}
