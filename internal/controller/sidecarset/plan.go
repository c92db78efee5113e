package sidecarset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Events, as users' tools know them.
const (
	eventNotUpgradable = "NotUpgradablePods"
	eventReset         = "ResetContainerSucceed"
	eventResetFailed   = "ResetContainerFailed"
)

// Plan decides the next step. It reads only the state and changes nothing.
//
// A hot upgrade that has begun in a Pod is finished whatever the strategy says by now. Then Pods are updated as far as the budget goes; at
// last records are kept.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	switch {
	case v.Set.DeletionTimestamp != nil:
		// Pods keep their sidecars, and the garbage collector takes the revisions along.
		return b.Plan()
	case v.problem != nil:
		return b.Stop(v.problem)
	}
	rollout.WriteHistory(v.history, b)
	p := planner{State: &v, Builder: b, written: map[*corev1.Pod]bool{}}
	p.settle()
	if v.mayUpdate() {
		p.update()
	}
	p.tidy()
	return b.Plan()
}

// planner plans one pass.
type planner struct {
	*State
	*plan.Builder
	// written are the Pods that this pass writes to already.
	written map[*corev1.Pod]bool
}

func (p *planner) do(object *corev1.Pod, chain ...plan.Action) {
	p.written[object] = true
	p.Do(chain...)
}

// settle turns containers idle whose work another one has taken over.
func (p *planner) settle() {
	for i := range p.matched {
		s := &p.matched[i]
		if len(s.Resets) == 0 {
			continue
		}
		after := s.Pod.DeepCopy()
		what := p.target.Reset(after, s.Resets, p.Now)
		p.do(s.Pod, plan.Action{
			Verb: plan.Update, Concern: plan.Settle, Before: s.Pod, After: after,
			What: "goes idle: " + what, Why: "the other container has taken over",
			OnObject: true, Event: eventReset, EventMessage: "reset sidecar container image empty successfully",
			FailedEvent: eventResetFailed, FailedPrefix: "reset sidecar container image empty failed: ",
		})
	}
}

// update brings the present images to the Pods whose turn it is, and tells why others are not updated.
func (p *planner) update() {
	for _, s := range p.decision.Update {
		if p.written[s.Pod] {
			continue
		}
		after := s.Pod.DeepCopy()
		what := p.target.Upgrade(after, p.Now)
		chain := plan.Chain{{
			Verb: plan.Update, Concern: plan.Rollout, Before: s.Pod, After: after, What: "in place: " + what,
			Why: fmt.Sprintf("revision %s is wanted", p.target.Revision), FailedEvent: rollout.EventFailedUpdatePodInPlace,
		}}
		noted := after.DeepCopy()
		if sidecar.SetUpgradable(noted, p.Set.Name, true, p.at()) {
			chain = append(chain, plan.Action{Verb: plan.UpdateStatus, Concern: plan.Tidy, Before: after, After: noted})
		}
		p.do(s.Pod, chain...)
	}
	if p.decision.Recheck > 0 {
		p.Recheck(p.decision.Recheck, "an update by a Pod's workload is waited for no longer")
	}
	p.refuse()
	p.hold()
}

// refuse tells which Pods can't be updated in place, on themselves and in an event.
func (p *planner) refuse() {
	for _, s := range p.decision.NotUpgradable {
		p.setUpgradable(s, false, "more than images differ from the present sidecars")
	}
	if n := len(p.decision.NotUpgradable); n > 0 {
		p.Hold(plan.Hold{
			Code:  reason.InPlaceRefused,
			Why:   fmt.Sprintf("SidecarSet in-place update detected %d not upgradable pod(s) in this round, will skip them.", n),
			Event: eventNotUpgradable, EventType: corev1.EventTypeNormal,
		})
	}
}

func (p *planner) setUpgradable(s *sidecar.PodStatus, upgradable bool, why string) {
	if p.written[s.Pod] {
		return
	}
	after := s.Pod.DeepCopy()
	if sidecar.SetUpgradable(after, p.Set.Name, upgradable, p.at()) {
		p.do(s.Pod, plan.Action{
			Verb: plan.UpdateStatus, Concern: plan.Tidy, Before: s.Pod, After: after,
			What: fmt.Sprintf("condition %s %t", sidecar.Upgradable, upgradable), Why: why,
		})
	}
}

func (p *planner) at() sidecar.At { return sidecar.At{Now: p.Now, Exists: p.exists} }

// hold tells why Pods that are not up to date are not updated now.
func (p *planner) hold() {
	d := &p.decision
	for _, s := range d.Waiting {
		p.Hold(plan.Hold{Code: reason.Held, Name: nameOf(s.Pod), Why: s.Waits})
	}
	if n := len(d.OverBudget); n > 0 {
		used := min(d.Used+len(d.Update), d.MaxUnavailable)
		p.Hold(plan.Hold{Code: reason.WaitBudget, Why: fmt.Sprintf("%d Pods wait: of maxUnavailable %d are %d used", n, d.MaxUnavailable,
			used)})
	}
	if n := len(d.Kept); n > 0 {
		p.Hold(plan.Hold{Code: reason.HeldByPartition, Why: fmt.Sprintf("the partition keeps %d Pods", n)})
	}
}

// summary describes the SidecarSet and its limits in a line.
func (v *State) summary() string {
	out := fmt.Sprintf("SidecarSet %s", v.Set.Name)
	if v.problem != nil {
		return out
	}
	out += fmt.Sprintf("   pods %d", len(v.matched))
	switch {
	case !v.updates():
		return out + ", updates nothing"
	case v.Set.Spec.UpdateStrategy.Paused:
		out += ", paused"
	}
	if partition := v.Set.Spec.UpdateStrategy.Partition; partition != nil && partition.String() != "0" {
		out += ", partition " + partition.String()
	}
	return out + fmt.Sprintf(", maxUnavailable %d", v.decision.MaxUnavailable)
}

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
	requested := v.Set.Spec.InjectionStrategy.Revision
	if requested == nil {
		return live
	}
	if found := sidecar.Requested(requested, v.Revisions); found != nil {
		live[found.Name] = true
	}
	return live
}
