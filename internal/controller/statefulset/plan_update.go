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
func deleteSpecified(v *Survey, complete bool, b *plan.Builder) {
	for i := len(v.slots) - 1; i >= 0; i-- {
		s := v.slots[i]
		m := s.member
		if m == nil || !m.specified || !m.isFree() {
			continue
		}
		if !s.down && (!complete || v.down >= v.limits.maxUnavailable) {
			b.Hold(plan.Hold{Name: s.name, Why: fmt.Sprintf("it is named for deletion, but maxUnavailable %d is used up", v.limits.maxUnavailable)})
			continue
		}
		v.lose(s)
		v.delete(m, deletion{concern: plan.Scale, what: "delete", why: "it is named for deletion"}, b)
	}
}

// update brings the Pods within reach to the update revision, in order and within maxUnavailable. Under OrderedReady it does so once nothing else is
// to be done.
//
// A Pod that is not ready costs nothing, wherever it is in the order: it serves nobody, and may be broken by what the update mends. One that is
// ready and waits for minReadySeconds does serve, and so needs its place.
func update(v *Survey, complete bool, b *plan.Builder) {
	outdated := v.outdated()
	if len(outdated) == 0 {
		return
	}
	if why := (rollout.Rest{OnDelete: v.onDelete(), Paused: v.strategy.Paused}).Why(); why != "" {
		b.Hold(plan.Hold{Why: fmt.Sprintf("%s: %d Pods are not at %s", why, len(outdated), v.history.Update.Name)})
		return
	}
	u := v.updater(b)
	for _, s := range outdated {
		if m := s.member; m.isFree() && m.state == pub.LifecycleStatePreparingUpdate {
			// It has left service for the update, which OrderedReady would wait for else.
			u.move(s, "its update has begun")
		}
	}
	if !complete {
		b.Hold(plan.Hold{Why: fmt.Sprintf("%d Pods are not at %s; OrderedReady updates once all are there and available", len(outdated), v.history.Update.Name)})
		return
	}
	for _, s := range outdated {
		if m := s.member; m.isFree() && !m.ready {
			u.move(s, "it is not ready")
		}
	}
	for i, s := range outdated {
		if !s.member.isFree() {
			continue
		}
		if !s.down && v.down >= v.limits.maxUnavailable {
			b.Hold(plan.Hold{Name: s.name, Why: fmt.Sprintf("up to %d Pods wait: maxUnavailable %d is used up", len(outdated)-i, v.limits.maxUnavailable)})
			return
		}
		u.move(s, fmt.Sprintf("%s is wanted on %d Pods", v.history.Update.Name, len(v.reach)))
	}
}

// outdated returns the slots within reach about whose Pod or claims there is something to change, in the order of the update.
func (v *Survey) outdated() []*slot {
	var out []*slot
	for _, i := range v.reach {
		s := v.slots[i]
		if m := s.member; m != nil && !m.leaving && (m.isOutdated() || v.needsResize(s)) {
			out = append(out, s)
		}
	}
	return out
}

// updater updates one Pod after another to the update revision.
type updater struct {
	*Survey
	b    *plan.Builder
	ways *rollout.Ways
	// event is the reason of the event when a Pod is recreated; SuccessfulDelete unless set.
	event string
}

func (v *Survey) updater(b *plan.Builder) *updater {
	options := v.Options.InPlace
	options.IgnoreClaims = true // revisions hold no claim templates; the Pod's volumes say whether they have changed
	return &updater{Survey: v, b: b, ways: rollout.WaysTo(v.history.Update, v.history, options)}
}

// move takes a Pod one step towards the update revision, after its claims have grown.
func (u *updater) move(s *slot, why string) {
	m := s.member
	switch u.resize(s, u.b) {
	case growing:
		u.lose(s)
		m.settled = true
		return
	case stuck:
		m.settled = true
		return
	}
	switch {
	case !m.isOutdated() || inplace.Pending(m.pod):
	case !u.inPlace():
		u.recreate(s, "recreate", why)
	case !m.fits:
		u.refuse(s, "its volumes are not those of the claim templates", why)
	default:
		way := u.ways.From(m.pod)
		if way.Refusal != "" {
			u.refuse(s, way.Refusal, why)
			return
		}
		grace := int32(0)
		if details := u.strategy.InPlaceUpdateStrategy; details != nil {
			grace = details.GracePeriodSeconds
		}
		u.lose(s)
		m.settled = true
		u.workload().UpdateInPlace(rollout.Update{Pod: m.pod, Target: u.history.Update, Change: way.Change, GraceSeconds: grace, Why: why}, u.b)
	}
}

// refuse does what is to be done about a Pod that can't be updated in place.
func (u *updater) refuse(s *slot, refusal, why string) {
	if !u.inPlaceOnly() {
		u.recreate(s, "recreate: "+refusal, why)
		return
	}
	s.member.settled = true
	u.b.Hold(rollout.Refused(s.member.pod, u.history.Update, refusal))
}

// recreate deletes a Pod, whose slot is then filled anew.
func (u *updater) recreate(s *slot, what, why string) {
	u.lose(s)
	u.delete(s.member, deletion{concern: plan.Rollout, what: what, why: why, event: u.event}, u.b)
}
