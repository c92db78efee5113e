package statefulset

import (
	"fmt"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
	eventSuccessfulCreate      = "SuccessfulCreate"
	eventFailedCreate          = "FailedCreate"
	eventSuccessfulDelete      = "SuccessfulDelete"
	eventFailedDelete          = "FailedDelete"
	eventFailedUpdate          = "FailedUpdate"
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
	return b.Plan()
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
		action.FailedEvent = eventFailedUpdate
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
	v.delete(m, deletion{concern: plan.Scale, what: "delete", why: "its preDelete hook let go"}, b)
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
		Verb: plan.Update, Concern: plan.Settle, Before: m.Pod, After: after, FailedEvent: eventFailedUpdate,
		What: "label " + labelPodName, Why: "it is missing or wrong",
	})
	m.Settled = true
}

// deletion says why a Pod is deleted.
type deletion struct {
	concern   plan.Concern
	what, why string
	// event is the reason of the event; SuccessfulDelete unless set.
	event string
}

// delete deletes a Pod, after its claims have been told what to go along with, or, while its preDelete hook holds it, has it wait in
// PreparingDelete.
func (v *State) delete(m *member, d deletion, b *plan.Builder) {
	if v.workload.AwaitHook(&m.Member, d.concern, d.why, b) {
		return
	}
	event := d.event
	if event == "" {
		event = eventSuccessfulDelete
	}
	m.Settled = true
	b.Do(append(v.claimsBefore(m), plan.Action{
		Verb: plan.Delete, Concern: d.concern, Before: m.Pod, What: d.what, Why: d.why,
		Event: event, EventMessage: fmt.Sprintf("delete Pod %s in StatefulSet %s successful", m.Pod.Name, v.Set.Name), FailedEvent: eventFailedDelete,
	})...)
}
