package statefulset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// burst is the most Pods that one pass creates. Passes follow each other at once. The fewer Pods one of them creates, the sooner those before have
// their readiness gates opened: once their containers run, each costs the kubelet a report more.
const burst = 25

// walker goes through the slots.
type walker struct {
	*Survey
	b *plan.Builder
	// bornOld says, for each position, whether a missing Pod comes back at the current revision.
	bornOld []bool
	// missing is the number of slots without a Pod, and created how many Pods this pass creates.
	missing, created int
	// used is how many units of scaleStrategy.maxUnavailable are used by the slots so far.
	used int
}

// walk goes up through the slots and fills those that are empty. Under OrderedReady it stops at the first slot whose Pod is not available, and
// reports whether there was none; else it always reports true.
func walk(v *Survey, b *plan.Builder) bool {
	replaceEnded(v, b)
	w := walker{Survey: v, b: b, bornOld: v.bornOld(), missing: v.missingFrom(0)}
	for i, s := range v.slots {
		if v.parallel() && w.used >= v.limits.scaleMaxUnavailable {
			if missing := v.missingFrom(i); missing > 0 {
				b.Hold(plan.Hold{Name: s.name, Why: fmt.Sprintf(
					"%d Pods are created later: scaleStrategy.maxUnavailable %d is used up", missing, v.limits.scaleMaxUnavailable)})
			}
			break
		}
		if w.visit(s) || v.parallel() {
			continue
		}
		return false
	}
	return true
}

// missingFrom counts the slots without a Pod from a position on.
func (v *Survey) missingFrom(position int) int {
	missing := 0
	for _, s := range v.slots[position:] {
		if s.member == nil {
			missing++
		}
	}
	return missing
}

// bornOld says, for each position, whether a missing Pod comes back at the current revision.
func (v *Survey) bornOld() []bool {
	if v.onDelete() {
		return make([]bool, len(v.slots))
	}
	// A Pod that lacks a claim is to be recreated, but at which revision it is stays what its label says.
	return ordinal.BornOld(v.asSlots(func(m *member) bool {
		return m.updated || (v.Options.PreparingUpdateAsUpdate && m.state == pub.LifecycleStatePreparingUpdate)
	}), v.order())
}

// replaceEnded deletes the Pods that have run to their end, such as those that were evicted. They cost nothing: whatever their slot was worth is
// lost already.
func replaceEnded(v *Survey, b *plan.Builder) {
	for _, s := range v.slots {
		if m := s.member; m != nil && m.ended && m.isFree() {
			v.delete(m, deletion{concern: plan.Scale, what: "delete", why: fmt.Sprintf("it has ended: %s", m.pod.Status.Phase)}, b)
		}
	}
}

// visit does for a slot what is due, and reports whether its Pod is available.
func (w *walker) visit(s *slot) bool {
	m := s.member
	if m != nil && m.available && !m.leaving {
		return true
	}
	w.used++
	switch {
	case m == nil && !s.adopting:
		w.create(s)
	case m == nil:
	case m.leaving:
		w.hold(s, "it is being deleted")
	case m.ended:
	default:
		if m.pod.Status.Phase == corev1.PodPending {
			w.addClaims(m)
		}
		w.hold(s, "it is not available")
		if !w.parallel() {
			w.replaceBroken(s)
		}
	}
	return false
}

// hold notes what an ordered walk waits for.
func (w *walker) hold(s *slot, why string) {
	if !w.parallel() {
		w.b.Hold(plan.Hold{Name: s.name, Why: "OrderedReady waits for it: " + why})
	}
}

func (w *walker) create(s *slot) {
	if w.created >= burst {
		return
	}
	rev := w.history.Update
	if w.bornOld[s.position] {
		rev = w.history.Current
	}
	chain, wait, err := w.newPod(s, rev)
	switch {
	case err != nil:
		w.b.Hold(plan.Hold{Name: s.name, Why: err.Error(), Event: eventFailedCreate, Failure: plan.Scale})
		return
	case wait != "":
		w.b.Hold(plan.Hold{Name: s.name, Why: wait})
		return
	}
	chain[len(chain)-1].Why = fmt.Sprintf("%d of %d Pods are there", len(w.slots)-w.missing, len(w.slots))
	w.b.Do(chain...)
	w.created++
}

// addClaims creates the claims that a Pod refers to and waits for.
func (w *walker) addClaims(m *member) {
	for i := range w.Set.Spec.VolumeClaimTemplates {
		template := &w.Set.Spec.VolumeClaimTemplates[i]
		c := w.newClaim(template, m.ordinal)
		refers := slices.ContainsFunc(m.pod.Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == c.Name
		})
		if refers && w.claims[c.Name] == nil {
			w.b.Do(w.createClaim(c, m.pod.Name))
		}
	}
}

// replaceBroken updates the Pod that an ordered walk stops at, where it is outdated and can't become available by itself: else a bad template
// could only be mended by hand. A Pod that the partition keeps at its revision, or that merely starts, is left alone.
func (w *walker) replaceBroken(s *slot) {
	m := s.member
	if w.strategy.Paused || w.onDelete() || !s.inReach || !m.isOutdated() || !m.isFree() {
		return
	}
	if why := pod.Broken(m.pod); why != "" {
		u := w.updater(w.b)
		u.event = eventReplaceBrokenPod
		u.move(s, "it is broken: "+why)
	}
}

// scaleIn deletes the Pods that are in no slot, the highest ordinal first. Under OrderedReady it does so one by one, once all slots are available,
// and reports whether nothing was left to do.
func scaleIn(v *Survey, complete bool, b *plan.Builder) bool {
	if len(v.surplus) == 0 {
		return complete
	}
	if !v.parallel() {
		if complete {
			v.scaleInOne(b)
		}
		return false
	}
	standIns := v.standIns()
	spare := v.spare()
	for _, m := range v.surplus {
		if !m.isFree() {
			continue
		}
		if standIns[m.ordinal] && m.available {
			if spare <= 0 {
				b.Hold(plan.Hold{Name: m.pod.Name, Why: "its ordinal is reserved; it goes once the Pod that takes its place is available"})
				continue
			}
			spare--
		}
		v.delete(m, deletion{concern: plan.Scale, what: "delete", why: v.whySurplus(m)}, b)
	}
	return complete
}

func (v *Survey) whySurplus(m *member) string {
	return fmt.Sprintf("%d Pods are wanted, and the ordinal %d is not one of theirs", len(v.slots), m.ordinal)
}

// scaleInOne deletes the highest Pod, unless one is on its way out already. Whether it is healthy does not matter: it is to go.
func (v *Survey) scaleInOne(b *plan.Builder) {
	for _, m := range v.surplus {
		if m.leaving || !m.isFree() {
			b.Hold(plan.Hold{Name: m.pod.Name, Why: "OrderedReady deletes one Pod at a time: it is on its way out"})
			return
		}
	}
	m := v.surplus[0]
	v.delete(m, deletion{concern: plan.Scale, what: "delete", why: v.whySurplus(m)}, b)
}

// standIns returns those surplus ordinals whose Pods stand in for a slot: their ordinals were reserved while they ran, and others take their places.
func (v *Survey) standIns() map[int32]bool {
	var wanted, unwanted []int32
	for _, s := range v.slots {
		wanted = append(wanted, s.ordinal)
	}
	for _, m := range v.surplus {
		unwanted = append(unwanted, m.ordinal)
	}
	out := map[int32]bool{}
	for _, n := range ordinal.Moved(wanted, unwanted) {
		out[n] = true
	}
	return out
}

// spare is how many available Pods could go while replicas less maxUnavailable stay available.
func (v *Survey) spare() int {
	limit := v.limits.maxUnavailable
	if n := v.limits.scaleMaxUnavailable; n != budget.Unlimited {
		limit = n
	}
	available := 0
	for _, s := range v.slots {
		if !s.down {
			available++
		}
	}
	for _, m := range v.surplus {
		if !m.isDown() {
			available++
		}
	}
	return available - (len(v.slots) - limit)
}
