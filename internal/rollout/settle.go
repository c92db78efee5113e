package rollout

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// isSettled reports whether there is plainly nothing in flight on the Pod, as on nearly every Pod of a large workload.
func (w *Workload) isSettled(p *corev1.Pod) bool {
	_, hashed := p.Labels[keys.PodTemplateHash]
	state := pod.State(p)
	return (state == pub.LifecycleStateNormal || state == pub.LifecycleStatePreparingDelete) && (hashed || !w.TemplateHash) &&
		!inplace.NeedsFinish(p) && !inplace.Pending(p) && !lifecycle.NeedsFirstReady(p)
}

// Settle finishes what is in flight on the Pod: a grace period, the next batch of containers, readiness, the lifecycle state, a missing
// label. atTarget says that no update wants to move the Pod: one that still waits for its hook then goes back into service.
func (w *Workload) Settle(m *Member, atTarget bool, b *plan.Builder) {
	p := m.Pod
	if w.isSettled(p) {
		return
	}
	after := p.DeepCopy()
	did := w.advance(p, after, b)
	if state, moves := lifecycle.Next(after, lifecycle.Facts{
		Lifecycle:  w.Lifecycle,
		UpdateDone: did.done,
		AtTarget:   atTarget,
	}); moves && pod.IsScheduled(after) {
		lifecycle.Enter(after, state, w.Lifecycle, w.Now)
		did.add("%s", state)
	}
	if lifecycle.NeedsFirstReady(after) && pod.IsScheduled(after) {
		lifecycle.FirstReady(after, w.Now)
		did.add("ready by its hooks")
	}
	if w.TemplateHash && after.Labels[keys.PodTemplateHash] == "" && after.Labels[appsv1.ControllerRevisionHashLabelKey] != "" {
		after.Labels[keys.PodTemplateHash] = revision.ShortHash(after.Labels[appsv1.ControllerRevisionHashLabelKey])
		did.add("label %s", keys.PodTemplateHash)
	}
	while := firstReadiness(p, after, w.Now)
	chain := PodWrites(plan.Settle, p, after)
	if len(chain) == 0 {
		return
	}
	chain[0].What, chain[0].Why, chain[0].While = did.text, "in flight", while
	b.Do(chain...)
	m.Settled = true
}

// firstReadiness returns what the write is conditional on that lets a new Pod become ready; empty if it is another write. The kubelet
// writes to the Pod at the same moment, which does not matter; whether somebody has taken the Pod further does. That shows in the lifecycle
// state, where the write moves it along, or else in the time of it, which the write renews.
func firstReadiness(before, after *corev1.Pod, now time.Time) string {
	switch {
	case !isNew(before) || len(after.Status.Conditions) == len(before.Status.Conditions):
		return ""
	case after.Labels[keys.LifecycleState] != before.Labels[keys.LifecycleState]:
		return keys.LifecycleState
	}
	lifecycle.Renew(after, now)
	return keys.LifecycleTimestamp
}

// progress is what was done to a Pod, in words, and whether no in-place update is under way on it.
type progress struct {
	text string
	done bool
}

func (p *progress) add(format string, args ...any) {
	if p.text != "" {
		p.text += ", "
	}
	p.text += fmt.Sprintf(format, args...)
}

// advance takes an in-place update one step further, or turns a Pod ready on which none is under way.
func (w *Workload) advance(before, after *corev1.Pod, b *plan.Builder) progress {
	var did progress
	step := inplace.Advance(after, w.InPlace, w.Now)
	if step.Problem != nil {
		b.Hold(plan.Hold{Name: before.Name, Why: step.Problem.Error(), Event: EventFailedUpdatePodInPlace, Failure: plan.Rollout})
	}
	if step.Wait > 0 {
		b.Recheck(step.Wait, fmt.Sprintf("the grace period of %s is over", before.Name))
		b.Hold(plan.Hold{Name: before.Name, Why: "gracePeriodSeconds: its image changes once it has been NotReady for that long"})
	}
	if step.Changed {
		did.add("in place: next containers")
		return did
	}
	if inplace.Pending(after) {
		return did
	}
	verdict := inplace.Progress(after, w.InPlace)
	did.done = verdict.Done
	switch {
	case !verdict.Done:
		b.Hold(plan.Hold{Name: before.Name, Why: verdict.Why})
	case inplace.NeedsFinish(after) && pod.IsScheduled(after):
		inplace.Finish(after, w.Now)
		did.add("ready by its update")
	}
	return did
}

// isNew reports whether the Pod has never been updated in place, and no readiness gate of ours has spoken yet.
func isNew(p *corev1.Pod) bool {
	_, updated := p.Annotations[keys.InPlaceUpdateState]
	state := pod.State(p)
	return !updated && pod.Condition(p, pub.InPlaceUpdateReady) == nil && (state == pub.LifecycleStatePreparingNormal || state == pub.LifecycleStateNormal)
}
