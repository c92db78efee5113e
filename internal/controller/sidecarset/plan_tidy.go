package sidecarset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// tidy corrects the condition SidecarSetUpgradable of Pods that can be updated again, or were, or whose SidecarSets are gone, and
// deletes revisions that are of no use.
func (p *planner) tidy() {
	for i := range p.matched {
		if s := &p.matched[i]; s.IsConditionStale(p.Set.Name, p.exists) {
			p.setUpgradable(s, s.Upgradable, "it is not as the Pod says")
		}
	}
	p.trimHistory(p.Builder)
}

// trimHistory deletes the oldest revisions beyond the limit. Unlike that of a workload the limit counts those in use, too, but they are
// never deleted: the present one, those that Pods hold, and those that new Pods are to get.
func (v *State) trimHistory(b *plan.Builder) {
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
func (v *State) liveRevisions() map[string]bool {
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
