package statefulset

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
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
	if v.nextAvailable > 0 {
		b.Recheck(v.nextAvailable, fmt.Sprintf("%s becomes available (minReadySeconds %d)", v.nextAvailablePod, v.limits.minReadySeconds))
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
		after := p.DeepCopy()
		after.OwnerReferences = append(after.OwnerReferences, ownerReference(v.Set))
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Tidy, Before: p, After: after, FailedEvent: eventFailedUpdate,
			What: "adopt", Why: "it has the labels and the name of a Pod of this StatefulSet, and no controller",
		})
	}
}

// release lets go of Pods whose labels or whose name do not fit any more.
func release(v *Survey, b *plan.Builder) {
	for _, p := range v.release {
		after := p.DeepCopy()
		after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == v.Set.UID })
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Tidy, Before: p, After: after,
			What: "release", Why: "its labels or its name do not match any more",
		})
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
		after := m.pod.DeepCopy()
		lifecycle.Enter(after, pub.LifecycleStateNormal, v.Set.Spec.Lifecycle, v.Now)
		chain := rollout.PodWrites(plan.Scale, m.pod, after)
		chain[0].What, chain[0].Why = "back into service", "it is wanted again before its preDelete hook let it go"
		b.Do(chain...)
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
	if chain := v.workload().PrepareDelete(m.pod, d.concern); chain != nil {
		if len(chain) == 0 {
			b.Hold(plan.Hold{Name: m.pod.Name, Why: "its preDelete hook holds it"})
			return
		}
		chain[0].Why = d.why
		b.Do(chain...)
		m.settled = true
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
