package cloneset

import (
	"fmt"

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

// settle finishes what is in flight on each Pod: grace periods, the next batch of containers, readiness, lifecycle states, missing labels.
func settle(v *Survey, b *plan.Builder) {
	wanted := v.moves(isUpdated).Update
	for _, m := range v.fleet.members {
		if !m.isSettled() {
			settlePod(v, m, m.isWhereWanted(wanted), b)
		}
	}
}

// isSettled reports whether there is plainly nothing in flight on the Pod, as on nearly every Pod of a large fleet.
func (m *member) isSettled() bool {
	_, hashed := m.pod.Labels[keys.PodTemplateHash]
	return (m.state == pub.LifecycleStateNormal || m.state == pub.LifecycleStatePreparingDelete) && hashed &&
		!inplace.NeedsFinish(m.pod) && !inplace.Pending(m.pod) && !lifecycle.NeedsFirstReady(m.pod)
}

// isWhereWanted reports whether no update would move the Pod, where wanted is the number of Pods to update, negative backwards. A Pod that
// still waits for its hook although nothing is to be updated any more has to go back into service.
func (m *member) isWhereWanted(wanted int) bool {
	return wanted == 0 || m.updated == (wanted > 0)
}

func settlePod(v *Survey, m *member, atTarget bool, b *plan.Builder) {
	after := m.pod.DeepCopy()
	what := advance(v, m, after, b)
	if state, moves := lifecycle.Next(after, lifecycle.Facts{
		Lifecycle:  v.Set.Spec.Lifecycle,
		UpdateDone: what.done,
		AtTarget:   atTarget,
	}); moves && pod.IsScheduled(after) {
		lifecycle.Enter(after, state, v.Set.Spec.Lifecycle, v.Now)
		what.add("%s", state)
	}
	if lifecycle.NeedsFirstReady(after) && pod.IsScheduled(after) {
		lifecycle.FirstReady(after, v.Now)
		what.add("ready by its hooks")
	}
	if after.Labels[keys.PodTemplateHash] == "" && after.Labels[appsv1.ControllerRevisionHashLabelKey] != "" {
		after.Labels[keys.PodTemplateHash] = revision.ShortHash(after.Labels[appsv1.ControllerRevisionHashLabelKey])
		what.add("label %s", keys.PodTemplateHash)
	}
	chain := podWrites(plan.Settle, m.pod, after)
	if len(chain) == 0 {
		return
	}
	m.settled = true
	chain[0].What, chain[0].Why = what.text, "in flight"
	// The first readiness of a Pod that was never updated is right whatever the kubelet writes at the same moment, which it does.
	chain[0].AnyVersion = isFirstReadiness(m.pod)
	b.Do(chain...)
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
func advance(v *Survey, m *member, after *corev1.Pod, b *plan.Builder) progress {
	var did progress
	step := inplace.Advance(after, v.Options.InPlace, v.Now)
	if step.Problem != nil {
		b.Hold(plan.Hold{Name: m.pod.Name, Why: step.Problem.Error(), Event: eventFailedUpdatePodInPlace, Failure: plan.Rollout})
	}
	if step.Wait > 0 {
		b.Recheck(step.Wait, fmt.Sprintf("the grace period of %s is over", m.pod.Name))
		b.Hold(plan.Hold{Name: m.pod.Name, Why: "gracePeriodSeconds: its image changes once it has been NotReady for that long"})
	}
	if step.Changed {
		did.add("in place: next containers")
		return did
	}
	if inplace.Pending(after) {
		return did
	}
	verdict := inplace.Progress(after, v.Options.InPlace)
	did.done = verdict.Done
	switch {
	case !verdict.Done:
		b.Hold(plan.Hold{Name: m.pod.Name, Why: verdict.Why})
	case inplace.NeedsFinish(after) && pod.IsScheduled(after):
		inplace.Finish(after, v.Now)
		did.add("ready by its update")
	}
	return did
}

// isFirstReadiness reports whether the Pod is new: it has never been updated in place, and no readiness gate of ours has spoken yet.
func isFirstReadiness(p *corev1.Pod) bool {
	_, updated := p.Annotations[keys.InPlaceUpdateState]
	return !updated && pod.Condition(p, pub.InPlaceUpdateReady) == nil && pod.State(p) == pub.LifecycleStatePreparingNormal
}
