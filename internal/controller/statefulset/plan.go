package statefulset

import (
	"fmt"
	"strings"

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

// Plan decides the next step. It reads only the survey and changes nothing but the survey's own notes.
func Plan(v Survey) plan.Plan {
	b := plan.For(summary(&v))
	switch {
	case v.Set.DeletionTimestamp != nil:
		// The garbage collector takes Pods and revisions along, and the claims that are to go.
		return b.Plan()
	case v.problem != nil:
		return b.Stop(v.problem)
	}
	rollout.WriteHistory(v.history, b)
	adopt(&v, b)
	settle(&v, b)
	// Every phase counts what the ones before have made unavailable, so that together they stay within maxUnavailable.
	complete := walk(&v, b)
	complete = scaleIn(&v, complete, b)
	keepClaims(&v, b)
	deleteSpecified(&v, complete, b)
	update(&v, complete, b)
	release(&v, b)
	if err := preDownload(&v, b); err != nil {
		b.Hold(plan.Hold{Why: err.Error()})
	}
	rollout.TrimHistory(v.history, v.Set.Spec.RevisionHistoryLimit, v.pods(), b)
	v.awaited.Recheck(v.limits.minReadySeconds, b)
	if _, wait := v.progressOf(); wait > 0 {
		b.Recheck(wait, fmt.Sprintf("progressDeadlineSeconds %d are over", *v.Set.Spec.ProgressDeadlineSeconds))
	}
	return b.Plan()
}

// summary describes the StatefulSet and its limits in a line.
func summary(v *Survey) string {
	var out strings.Builder
	fmt.Fprintf(&out, "StatefulSet %s/%s   replicas %d", v.Set.Namespace, v.Set.Name, v.replicas())
	if v.problem != nil {
		return out.String()
	}
	fmt.Fprintf(&out, ", pods %d", len(v.members()))
	if v.parallel() {
		out.WriteString(", parallel")
	} else {
		out.WriteString(", ordered")
	}
	if v.onDelete() {
		out.WriteString(", updates on delete")
	} else {
		fmt.Fprintf(&out, ", partition %d, maxUnavailable %d", v.limits.partition, v.limits.maxUnavailable)
	}
	if v.strategy.Paused {
		out.WriteString(", paused")
	}
	if n := v.limits.scaleMaxUnavailable; n != budget.Unlimited {
		fmt.Fprintf(&out, ", scaleStrategy.maxUnavailable %d", n)
	}
	return out.String()
}

// adopt takes Pods over that nobody controls, such as those that a StatefulSet of Kubernetes has left behind. What becomes of them is for the next
// pass, which sees them whole.
func adopt(v *Survey, b *plan.Builder) {
	for _, p := range v.adopt {
		action := rollout.Adopt(p, ownerReference(v.Set))
		action.FailedEvent = eventFailedUpdate
		b.Do(action)
	}
}

// release lets go of Pods whose labels or whose name do not fit any more.
func release(v *Survey, b *plan.Builder) {
	for _, p := range v.release {
		b.Do(rollout.Release(p, ownerReference(v.Set), "its labels or its name do not match any more"))
	}
}

// settle finishes what is in flight on each Pod: grace periods, the next batch of containers, readiness, hooks, deletions that waited for one.
func settle(v *Survey, b *plan.Builder) {
	workload := v.workload()
	for _, s := range v.slots {
		m := s.member
		switch {
		case m == nil || m.leaving:
		case m.state == pub.LifecycleStatePreparingDelete:
			v.settleDeletion(m, v.isUnwanted(s), b)
		case !workload.IsSettled(m.pod):
			m.settled = workload.Settle(m.pod, v.onDelete() || !s.inReach || !m.isOutdated(), b)
		}
		v.repair(m, b)
	}
	for _, m := range v.surplus {
		switch {
		case m.leaving:
		case m.state == pub.LifecycleStatePreparingDelete:
			v.settleDeletion(m, true, b)
		case !workload.IsSettled(m.pod):
			m.settled = workload.Settle(m.pod, true, b)
		}
	}
}

// isUnwanted reports whether the Pod of a slot is to be replaced.
func (v *Survey) isUnwanted(s *slot) bool {
	m := s.member
	return m.specified || m.ended || (s.inReach && m.isOutdated() && !v.onDelete())
}

// settleDeletion deletes a Pod whose preDelete hook has let go, or takes one back into service that is wanted again.
func (v *Survey) settleDeletion(m *member, unwanted bool, b *plan.Builder) {
	if !unwanted {
		b.Do(v.workload().ComeBack(m.pod, pub.LifecycleStateNormal)...)
		m.settled = true
		return
	}
	v.delete(m, deletion{concern: plan.Scale, what: "delete", why: "its preDelete hook let go"}, b)
}

// repair writes the label by which Services find a single Pod, where somebody took it off.
func (v *Survey) repair(m *member, b *plan.Builder) {
	if m == nil || m.leaving || m.settled || m.pod.Labels[labelPodName] == m.pod.Name {
		return
	}
	after := m.pod.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	after.Labels[labelPodName] = m.pod.Name
	after.Labels[labelPodIndex] = fmt.Sprint(m.ordinal)
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Settle, Before: m.pod, After: after, FailedEvent: eventFailedUpdate,
		What: "label " + labelPodName, Why: "it is missing or wrong",
	})
	m.settled = true
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
func (v *Survey) delete(m *member, d deletion, b *plan.Builder) {
	if waits, told := v.workload().AwaitHook(m.pod, d.concern, d.why, b); waits {
		m.settled = m.settled || told
		return
	}
	event := d.event
	if event == "" {
		event = eventSuccessfulDelete
	}
	m.settled = true
	b.Do(append(v.claimsBefore(m), plan.Action{
		Verb: plan.Delete, Concern: d.concern, Before: m.pod, What: d.what, Why: d.why,
		Event: event, EventMessage: fmt.Sprintf("delete Pod %s in StatefulSet %s successful", m.pod.Name, v.Set.Name), FailedEvent: eventFailedDelete,
	})...)
}
