package statefulset

import (
	"cmp"
	"fmt"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
	eventReplaceBrokenPod      = "ReplaceBrokenPod"
	eventSuccessfulResize      = "SuccessfulResize"
	eventFailedResize          = "FailedResize"
	eventFailedUpdatePVC       = "FailedUpdatePVC"
	eventConflictingController = "ConflictingController"
)

// Plan decides the next step. It reads only the state and changes nothing but its notes of this pass.
//
// What is in flight is settled first. Then slots are filled and surplus Pods deleted, and at last Pods are updated; every phase counts
// what the ones before have made unavailable, so that together they stay within maxUnavailable.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	switch {
	case v.Set.DeletionTimestamp != nil:
		// The garbage collector takes Pods and revisions along, and the claims that are to go.
		return b.Plan()
	case v.problem != nil:
		return b.Stop(v.problem)
	}
	rollout.WriteHistory(v.workload.History, b)
	v.adoptOrphans(b)
	v.settle(b)
	complete := v.scale(b)
	v.deleteSpecified(complete, b)
	v.update(complete, b)
	v.preDownload(b)
	v.tidy(b)
	_, deadline := v.progressing()
	v.workload.Recheck(deadline, b)
	return v.workload.RecheckWaiting(v.workloadMembers(), b.Plan())
}

// preDownload has the images of an update pulled before the Pods are updated in place.
func (v *State) preDownload(b *plan.Builder) {
	if v.Options.PreDownload {
		v.workload.PreDownloadInPlace(rollout.Pace{
			InPlace: v.inPlace(), Replicas: int(v.replicas()), Partition: v.limits.partition, MaxUnavailable: v.limits.maxUnavailable,
		}, v.strategy.InPlaceUpdateStrategy, v.podCounts().UpdatedReady, b)
	}
}

// tidy releases Pods whose labels or whose name do not fit any more, and deletes revisions that are of no use.
func (v *State) tidy(b *plan.Builder) {
	for _, p := range v.release {
		b.Do(v.workload.Release(p, "its labels or its name do not match any more"))
	}
	rollout.TrimHistory(v.workload.History, v.Set.Spec.RevisionHistoryLimit, v.pods(), b)
}

// summary describes the StatefulSet and its limits in a line.
func (v *State) summary() string {
	parts := []string{fmt.Sprintf("replicas %d", v.replicas())}
	if v.problem != nil {
		return v.workload.Summary(parts...)
	}
	order := "ordered"
	if v.parallel() {
		order = "parallel"
	}
	parts = append(parts, fmt.Sprintf("pods %d", len(v.members())), order)
	if v.workload.OnDelete {
		parts = append(parts, "updates on delete")
	} else {
		parts = append(parts, fmt.Sprintf("partition %d", v.limits.partition), fmt.Sprintf("maxUnavailable %d", v.limits.maxUnavailable))
	}
	if v.workload.Paused {
		parts = append(parts, "paused")
	}
	if n := v.limits.scaleMaxUnavailable; n != budget.Unlimited {
		parts = append(parts, fmt.Sprintf("scaleStrategy.maxUnavailable %d", n))
	}
	return v.workload.Summary(parts...)
}

// adoptOrphans adopts Pods without a controller, such as those that a StatefulSet of Kubernetes has left behind. What becomes of them
// is for the next pass, which sees them whole.
func (v *State) adoptOrphans(b *plan.Builder) {
	for _, p := range v.adopt {
		action := v.workload.Adopt(p)
		action.FailedEvent = rollout.EventFailedUpdate
		b.Do(action)
	}
}

// settle finishes what is in flight on each Pod: grace periods, the next batch of containers, readiness, hooks, deletions that waited for
// one.
func (v *State) settle(b *plan.Builder) {
	for _, s := range v.slots {
		m := s.member
		switch {
		case m == nil || m.Leaving:
		case m.IsHeld():
			v.settleDeletion(m, v.isUnwanted(s), b)
		default:
			v.workload.Settle(&m.Member, v.workload.OnDelete || !s.inReach || !m.isOutdated(), b)
		}
		v.repair(m, b)
	}
	for _, m := range v.surplus {
		switch {
		case m.Leaving:
		case m.IsHeld():
			v.settleDeletion(m, true, b)
		default:
			v.workload.Settle(&m.Member, true, b)
		}
	}
}

// isUnwanted reports whether the Pod of a slot is to be replaced.
func (v *State) isUnwanted(s *slot) bool {
	m := s.member
	return m.Specified || m.Ended || (s.inReach && m.isOutdated() && !v.workload.OnDelete)
}

// settleDeletion deletes a Pod that its preDelete hook has released, or takes one back into service that is wanted again.
func (v *State) settleDeletion(m *member, unwanted bool, b *plan.Builder) {
	if !unwanted {
		v.workload.CancelDeletion(&m.Member, pub.LifecycleStateNormal, b)
		return
	}
	v.delete(m, plan.Action{Why: "its preDelete hook let go"}, b)
}

// repair writes the label by which Services find a single Pod, where somebody took it off.
func (v *State) repair(m *member, b *plan.Builder) {
	if m == nil || m.Leaving || m.Settled || m.Pod.Labels[labelPodName] == m.Pod.Name {
		return
	}
	after := m.Pod.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	after.Labels[labelPodName] = m.Pod.Name
	after.Labels[labelPodIndex] = fmt.Sprint(m.ordinal)
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Settle, Before: m.Pod, After: after, FailedEvent: rollout.EventFailedUpdate,
		What: "label " + labelPodName, Why: "it is missing or wrong",
	})
	m.Settled = true
}

// delete deletes a Pod, after its claims have been told what to go along with, or, while its preDelete hook holds it, has it wait in
// PreparingDelete. What as does not say is as in scaling.
func (v *State) delete(m *member, as plan.Action, b *plan.Builder) {
	as.Verb, as.Before, as.FailedEvent = plan.Delete, m.Pod, rollout.EventFailedDelete
	as.Concern = cmp.Or(as.Concern, plan.Scale)
	if v.workload.AwaitHook(&m.Member, as.Concern, as.Why, b) {
		return
	}
	as.What, as.Event = cmp.Or(as.What, "delete"), cmp.Or(as.Event, rollout.EventSuccessfulDelete)
	as.EventMessage = fmt.Sprintf("delete Pod %s in StatefulSet %s successful", m.Pod.Name, v.Set.Name)
	m.Settled = true
	b.Do(append(v.claimsBefore(m), as)...)
}

// deleteSpecified replaces the Pods that the user named, the highest ordinal first: those that are unavailable at once, the others within
// maxUnavailable and, under OrderedReady, once nothing else is to be done.
func (v *State) deleteSpecified(complete bool, b *plan.Builder) {
	for i := len(v.slots) - 1; i >= 0; i-- {
		s := v.slots[i]
		m := s.member
		if m == nil || !m.Specified || !m.IsFree() {
			continue
		}
		if !s.down && (!complete || v.down >= v.limits.maxUnavailable) {
			b.Hold(plan.Hold{
				Code: reason.WaitBudget, Name: s.name, Why: fmt.Sprintf("it is named for deletion, but maxUnavailable %d is used up",
					v.limits.maxUnavailable),
			})
			continue
		}
		v.markDown(s)
		v.delete(m, plan.Action{Why: "it is named for deletion"}, b)
	}
}

// update brings the Pods within reach to the update revision, in order and within maxUnavailable. Under OrderedReady it does so once
// nothing else is to be done.
//
// A Pod that is not ready costs nothing, wherever it is in the order: it is out of service, and may be broken by what the update
// repairs. One that is ready and waits for minReadySeconds does serve, and so needs its place.
func (v *State) update(complete bool, b *plan.Builder) {
	outdated := v.outdated()
	if len(outdated) == 0 {
		return
	}
	if code, why := v.workload.WhyNotUpdating(); why != "" {
		b.Hold(plan.Hold{Code: code, Why: fmt.Sprintf("%s: %d Pods are not at %s", why, len(outdated), v.workload.History.Update.Name)})
		return
	}
	u := v.updater(b)
	for _, s := range outdated {
		if m := s.member; m.IsFree() && m.State == pub.LifecycleStatePreparingUpdate {
			// It has left service for the update, which OrderedReady would wait for else.
			u.move(s, "its update has begun")
		}
	}
	if !complete {
		b.Hold(plan.Hold{Code: reason.WaitEarlierOrdinal, Why: fmt.Sprintf(
			"%d Pods are not at %s; OrderedReady updates once all are there and available", len(outdated), v.workload.History.Update.Name)})
		return
	}
	for _, s := range outdated {
		if m := s.member; m.IsFree() && !m.Ready {
			u.move(s, "it is not ready")
		}
	}
	for i, s := range outdated {
		if !s.member.IsFree() {
			continue
		}
		if !s.down && v.down >= v.limits.maxUnavailable {
			b.Hold(plan.Hold{
				Code: reason.WaitBudget, Name: s.name, Why: fmt.Sprintf("up to %d Pods wait: maxUnavailable %d is used up", len(outdated)-i,
					v.limits.maxUnavailable),
			})
			return
		}
		u.move(s, fmt.Sprintf("%s is wanted on %d Pods", v.workload.History.Update.Name, len(v.reach)))
	}
}

// outdated returns the slots within reach about whose Pod or claims there is something to change, in the order of the update.
func (v *State) outdated() []*slot {
	var out []*slot
	for _, i := range v.reach {
		s := v.slots[i]
		if m := s.member; m != nil && !m.Leaving && (m.isOutdated() || v.needsResize(s)) {
			out = append(out, s)
		}
	}
	return out
}

// updater updates one Pod after another to the update revision.
type updater struct {
	*State
	inPlaceUpdater *rollout.Updater
	b              *plan.Builder
	// event is the reason of the event when a Pod is recreated; SuccessfulDelete unless set.
	event string
}

func (v *State) updater(b *plan.Builder) *updater {
	options := v.Options.InPlace
	options.IgnoreClaims = true // revisions hold no claim templates; the Pod's volumes say whether they have changed
	u := &updater{State: v, inPlaceUpdater: v.workload.UpdaterTo(v.workload.History.Update, options), b: b}
	if details := v.strategy.InPlaceUpdateStrategy; details != nil {
		u.inPlaceUpdater.GraceSeconds = details.GracePeriodSeconds
	}
	return u
}

// move takes a Pod one step towards the update revision, after its claims have grown.
func (u *updater) move(s *slot, why string) {
	m := s.member
	switch u.resize(s, u.b) {
	case growing:
		u.markDown(s)
		m.Settled = true
		return
	case stuck:
		m.Settled = true
		return
	}
	switch {
	case !m.isOutdated() || inplace.Pending(m.Pod):
	case !u.inPlace():
		u.recreate(s, plan.Action{What: "recreate", Why: why})
	case !m.fits:
		u.refuse(s, refusal{"its volumes are not those of the claim templates", "volumeClaimTemplates"}, why)
	default:
		if problem := u.inPlaceUpdater.Refusal(m.Pod); problem != "" {
			u.refuse(s, refusal{problem, u.inPlaceUpdater.RefusedField(m.Pod)}, why)
			return
		}
		u.markDown(s)
		m.Settled = true
		u.inPlaceUpdater.Update(m.Pod, why, u.b)
	}
}

// refusal is why a Pod can't be updated in place, and the field of the template that it is about.
type refusal struct{ why, field string }

// refuse does what is to be done about a Pod that can't be updated in place.
func (u *updater) refuse(s *slot, r refusal, why string) {
	if !u.inPlaceOnly() {
		u.recreate(s, plan.Action{What: "recreate: " + r.why, Why: why, NotInPlace: r.field})
		return
	}
	s.member.Settled = true
	u.inPlaceUpdater.HoldRefused(s.member.Pod, r.why, u.b)
}

// recreate deletes a Pod, whose slot is then filled anew.
func (u *updater) recreate(s *slot, as plan.Action) {
	u.markDown(s)
	as.Concern, as.Event, as.Method = plan.Rollout, u.event, plan.Recreate
	u.delete(s.member, as, u.b)
}
