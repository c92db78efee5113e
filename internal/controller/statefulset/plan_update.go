package statefulset

import (
	"fmt"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

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
			b.Hold(plan.Hold{Name: s.name, Why: fmt.Sprintf("it is named for deletion, but maxUnavailable %d is used up", v.limits.maxUnavailable)})
			continue
		}
		v.markDown(s)
		v.delete(m, deletion{concern: plan.Scale, what: "delete", why: "it is named for deletion"}, b)
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
	if why := v.workload.WhyNotUpdating(); why != "" {
		b.Hold(plan.Hold{Why: fmt.Sprintf("%s: %d Pods are not at %s", why, len(outdated), v.workload.History.Update.Name)})
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
		b.Hold(plan.Hold{Why: fmt.Sprintf(
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
			b.Hold(plan.Hold{Name: s.name, Why: fmt.Sprintf("up to %d Pods wait: maxUnavailable %d is used up", len(outdated)-i, v.limits.maxUnavailable)})
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
		u.recreate(s, "recreate", why)
	case !m.fits:
		u.refuse(s, "its volumes are not those of the claim templates", why)
	default:
		if refusal := u.inPlaceUpdater.Refusal(m.Pod); refusal != "" {
			u.refuse(s, refusal, why)
			return
		}
		u.markDown(s)
		m.Settled = true
		u.inPlaceUpdater.Update(m.Pod, why, u.b)
	}
}

// refuse does what is to be done about a Pod that can't be updated in place.
func (u *updater) refuse(s *slot, refusal, why string) {
	if !u.inPlaceOnly() {
		u.recreate(s, "recreate: "+refusal, why)
		return
	}
	s.member.Settled = true
	u.inPlaceUpdater.HoldRefused(s.member.Pod, refusal, u.b)
}

// recreate deletes a Pod, whose slot is then filled anew.
func (u *updater) recreate(s *slot, what, why string) {
	u.markDown(s)
	u.delete(s.member, deletion{concern: plan.Rollout, what: what, why: why, event: u.event}, u.b)
}
