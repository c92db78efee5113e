package statefulset

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// burst is the most Pods that one pass creates. Passes follow each other at once. The fewer Pods one of them creates, the sooner those
// before have their readiness gates opened: once their containers run, each costs the kubelet a report more.
const burst = 25

// filler fills the slots.
type filler struct {
	*State
	b *plan.Builder
	// atCurrent says, for each position, whether a missing Pod is created at the current revision.
	atCurrent []bool
	// missing is the number of slots without a Pod, and created how many Pods this pass creates.
	missing, created int
	// used is how many units of scaleStrategy.maxUnavailable are used by the slots so far.
	used int
}

// scale fills the slots, deletes surplus Pods, and tells claims what to go along with. Under OrderedReady it reports whether all slots
// are available and no Pod is surplus; else it always reports true.
func (v *State) scale(b *plan.Builder) bool {
	complete := v.fill(b)
	complete = v.scaleIn(complete, b)
	v.keepClaims(b)
	return complete
}

// fill goes up through the slots and creates the Pods of those that are empty. Under OrderedReady it stops at the first slot whose Pod
// is not available, and reports whether there was none; else it always reports true.
func (v *State) fill(b *plan.Builder) bool {
	v.replaceEnded(b)
	f := filler{State: v, b: b, atCurrent: v.atCurrent(), missing: v.missingFrom(0)}
	for i, s := range v.slots {
		if v.parallel() && f.used >= v.limits.scaleMaxUnavailable {
			if missing := v.missingFrom(i); missing > 0 {
				b.Hold(plan.Hold{Code: reason.WaitBudget, Name: s.name, Why: fmt.Sprintf(
					"%d Pods are created later: scaleStrategy.maxUnavailable %d is used up", missing, v.limits.scaleMaxUnavailable)})
			}
			break
		}
		if f.visit(s) || v.parallel() {
			continue
		}
		return false
	}
	return true
}

// missingFrom counts the slots without a Pod from a position on.
func (v *State) missingFrom(position int) int {
	missing := 0
	for _, s := range v.slots[position:] {
		if s.member == nil {
			missing++
		}
	}
	return missing
}

// atCurrent says, for each position, whether a missing Pod is created at the current revision.
func (v *State) atCurrent() []bool {
	if v.workload.OnDelete {
		return make([]bool, len(v.slots))
	}
	// A Pod that lacks a claim is to be recreated, but at which revision it is stays what its label says.
	return ordinal.AtCurrent(v.asSlots(func(m *member) bool {
		return m.Updated || (v.Options.PreparingUpdateAsUpdate && m.State == pub.LifecycleStatePreparingUpdate)
	}), v.order())
}

// replaceEnded deletes the Pods that have run to their end, such as those that were evicted. They cost nothing: their slot is
// unavailable already.
func (v *State) replaceEnded(b *plan.Builder) {
	for _, s := range v.slots {
		if m := s.member; m != nil && m.Ended && m.IsFree() {
			v.delete(m, plan.Action{Why: fmt.Sprintf("it has ended: %s", m.Pod.Status.Phase)}, b)
		}
	}
}

// visit does for a slot what is due, and reports whether its Pod is available.
func (f *filler) visit(s *slot) bool {
	m := s.member
	if m != nil && m.Available && !m.Leaving {
		return true
	}
	f.used++
	switch {
	case m == nil && !s.adopting:
		f.create(s)
	case m == nil:
	case m.Leaving:
		f.hold(s, "it is being deleted")
	case m.Ended:
	default:
		if m.Pod.Status.Phase == corev1.PodPending {
			f.addClaims(m)
		}
		f.hold(s, "it is not available")
		if !f.parallel() {
			f.replaceBroken(s)
		}
	}
	return false
}

// hold notes what OrderedReady waits for.
func (f *filler) hold(s *slot, why string) {
	if !f.parallel() {
		f.b.Hold(plan.Hold{Code: reason.WaitEarlierOrdinal, Name: s.name, Why: "OrderedReady waits for it: " + why})
	}
}

func (f *filler) create(s *slot) {
	if f.created >= burst {
		return
	}
	rev := f.workload.History.Update
	if f.atCurrent[s.position] {
		rev = f.workload.History.Current
	}
	chain, wait, err := f.newPod(s, rev)
	switch {
	case err != nil:
		f.b.Hold(plan.Hold{Code: reason.WaitVolumeClaim, Name: s.name, Why: err.Error(), Event: rollout.EventFailedCreate,
			Failure: plan.Scale})
		return
	case wait != "":
		f.b.Hold(plan.Hold{Code: reason.WaitVolumeClaim, Name: s.name, Why: wait})
		return
	}
	chain[len(chain)-1].Why = fmt.Sprintf("%d of %d Pods are there", len(f.slots)-f.missing, len(f.slots))
	f.b.Do(chain...)
	f.created++
}

// addClaims creates the claims that a Pod refers to and waits for.
func (f *filler) addClaims(m *member) {
	for i := range f.Set.Spec.VolumeClaimTemplates {
		template := &f.Set.Spec.VolumeClaimTemplates[i]
		c := f.newClaim(template, m.ordinal)
		refers := slices.ContainsFunc(m.Pod.Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == c.Name
		})
		if refers && f.claims[c.Name] == nil {
			f.b.Do(f.createClaim(c, m.Pod.Name))
		}
	}
}

// replaceBroken updates the Pod that OrderedReady waits for, where it is outdated and can't become available by itself: else a bad template
// could only be repaired by hand. A Pod that the partition keeps at its revision, or that merely starts, is left alone.
func (f *filler) replaceBroken(s *slot) {
	m := s.member
	if f.workload.Paused || f.workload.OnDelete || !s.inReach || !m.isOutdated() || !m.IsFree() {
		return
	}
	if why := pod.Broken(m.Pod); why != "" {
		u := f.updater(f.b)
		u.event = eventReplaceBrokenPod
		u.move(s, "it is broken: "+why)
	}
}

// scaleIn deletes the Pods that are in no slot, the highest ordinal first. Under OrderedReady it does so one by one, once all slots are
// available, and reports whether nothing was left to do.
func (v *State) scaleIn(complete bool, b *plan.Builder) bool {
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
		if !m.IsFree() {
			continue
		}
		if standIns[m.ordinal] && m.Available {
			if spare <= 0 {
				b.Hold(plan.Hold{Code: reason.WaitReplacement, Name: m.Pod.Name,
					Why: "its ordinal is reserved; it goes once the Pod that takes its place is available"})
				continue
			}
			spare--
		}
		v.deleteSurplus(m, b)
	}
	return complete
}

func (v *State) deleteSurplus(m *member, b *plan.Builder) {
	why := fmt.Sprintf("%d Pods are wanted, and the ordinal %d is not one of theirs", len(v.slots), m.ordinal)
	v.delete(m, plan.Action{Why: why}, b)
}

// scaleInOne deletes the highest Pod, unless one is on its way out already. Whether it is healthy does not matter: it is to go.
func (v *State) scaleInOne(b *plan.Builder) {
	for _, m := range v.surplus {
		if m.Leaving || !m.IsFree() {
			b.Hold(plan.Hold{Code: reason.WaitEarlierOrdinal, Name: m.Pod.Name,
				Why: "OrderedReady deletes one Pod at a time: it is on its way out"})
			return
		}
	}
	v.deleteSurplus(v.surplus[0], b)
}

// standIns returns those surplus ordinals whose Pods stand in for a slot: their ordinals were reserved while they ran, and others take
// their places.
func (v *State) standIns() map[int32]bool {
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
func (v *State) spare() int {
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

// Labels by which a Pod says its name and its ordinal. Wire: those of the StatefulSets of Kubernetes.
const (
	labelPodName  = appsv1.StatefulSetPodNameLabel
	labelPodIndex = appsv1.PodIndexLabel
)

// newPod returns the writes that create the Pod of a slot at the revision: what its claims need, then the Pod. Where a former claim is
// still on its way out, there are none, and wait says so.
func (v *State) newPod(s *slot, rev *appsv1.ControllerRevision) (chain plan.Chain, wait string, err error) {
	template, err := v.workload.History.Template(rev, &v.Set.Spec.Template)
	if err != nil {
		return nil, "", err
	}
	p := v.podOf(template, rev, s)
	for i := range v.Set.Spec.VolumeClaimTemplates {
		fresh := v.newClaim(&v.Set.Spec.VolumeClaimTemplates[i], s.ordinal)
		have := v.claims[fresh.Name]
		switch {
		case have == nil:
			chain = append(chain, v.createClaim(fresh, p.Name))
		case have.DeletionTimestamp != nil:
			return nil, "", fmt.Errorf("creating pod %s: its claim %s is being deleted", p.Name, have.Name)
		case v.isGarbage(have):
			return nil, fmt.Sprintf(
				"its claim %s is about to go along with the Pod or the StatefulSet before it; it gets a new one then", have.Name), nil
		default:
			if kept := v.keepClaim(have, nil, true); kept != nil {
				chain = append(chain, *kept)
			}
		}
	}
	claim.Mount(p, v.Set.Name, strconv.Itoa(int(s.ordinal)), v.Set.Spec.VolumeClaimTemplates)
	message := fmt.Sprintf("create Pod %s in StatefulSet %s successful", p.Name, v.Set.Name)
	return append(chain, rollout.CreatePod(p, rev, message)), "", nil
}

func (v *State) podOf(template *corev1.PodTemplateSpec, rev *appsv1.ControllerRevision, s *slot) *corev1.Pod {
	p := v.workload.NewPod(template, rev)
	p.Name = s.name
	p.Spec.Hostname, p.Spec.Subdomain = s.name, v.Set.Spec.ServiceName
	p.Labels[labelPodName] = s.name
	p.Labels[labelPodIndex] = strconv.Itoa(int(s.ordinal))
	v.start(p)
	return p
}

// start gives a new Pod its first lifecycle state, and the readiness gates by which it will be taken out of service. A Pod that nothing
// ever takes out of service has none, and so becomes ready without a write of ours.
func (v *State) start(p *corev1.Pod) {
	hooks := v.workload.Lifecycle
	state := pub.LifecycleStateNormal
	if hooks != nil && hooks.PreNormal != nil && !lifecycle.AllHooked(p, hooks.PreNormal) {
		state = pub.LifecycleStatePreparingNormal
	}
	lifecycle.Enter(p, state, hooks, v.Now)
	if v.inPlace() {
		pod.AddReadinessGates(p, pub.InPlaceUpdateReady)
	}
	if lifecycle.MarksNotReady(hooks) {
		pod.AddReadinessGates(p, pub.KruisePodReady)
	}
}
