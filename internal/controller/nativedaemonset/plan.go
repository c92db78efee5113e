package nativedaemonset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
	eventDeleted  = "PodDeleted"
	eventFailed   = "FailedDelete"
	eventOrphaned = "OrphanedRelease"
)

// Plan decides the next step from the state alone.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	switch {
	case v.DaemonSet.DeletionTimestamp != nil:
	case v.Orphaned:
		v.giveUp(b)
	case v.problem != nil:
		return b.Stop(v.problem)
	default:
		v.remove(b)
	}
	return b.Plan()
}

func (v *State) summary() string {
	out := fmt.Sprintf("DaemonSet %s/%s   %d Pods", v.DaemonSet.Namespace, v.DaemonSet.Name, v.DaemonSet.Status.DesiredNumberScheduled)
	if v.released {
		out += fmt.Sprintf(", %d stay old, %d may be unavailable", v.batch.Keep, v.batch.MaxUnavailable)
	}
	return out
}

// remove deletes old Pods.
func (v *State) remove(b *plan.Builder) {
	gone, wait := v.next()
	if v.Outdated {
		b.Hold(plan.Hold{Code: reason.ControllerLag, Why: "the DaemonSet has changed since the cache showed it"})
		return
	}
	if wait != "" {
		b.Hold(plan.Hold{Code: reason.Held, Why: wait})
	}
	for _, p := range gone {
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Rollout, Before: p, Method: plan.Recreate,
			What: "delete", Why: fmt.Sprintf("%d Pods stay old", v.batch.Keep),
			Event:        eventDeleted,
			EventMessage: fmt.Sprintf("Deleted Pod %s: another one of revision %s takes its place", p.Name, v.control.Revision),
			FailedEvent:  eventFailed, FailedPrefix: fmt.Sprintf("Deleting Pod %s: ", p.Name),
		})
	}
	v.recheck(b)
}

// recheck asks for a look when a Pod has been ready for as long as it has to be.
func (v *State) recheck(b *plan.Builder) {
	if !v.released {
		return
	}
	for _, p := range v.Pods {
		if _, wait := pod.Available(p, v.DaemonSet.Spec.MinReadySeconds, v.Now); pod.IsActive(p) {
			b.Recheck(wait, "a Pod has been ready for minReadySeconds")
		}
	}
}

// giveUp ends a release that nobody is left to end: the native controller rolls the DaemonSet out, with the strategy that its user wrote.
func (v *State) giveUp(b *plan.Builder) {
	kind, ok := steer.Of(ofDaemonSet(), v1beta1.RollingStylePartition)
	if !ok {
		return
	}
	o := steer.Objects{Workload: v.DaemonSet, Pods: v.Pods, Revisions: v.Revisions, Now: v.Now}
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Rollout, Before: v.DaemonSet, After: steer.Unlabel(steer.Unmark(kind, o).Workload),
		What: "end the release", Why: "its Rollout is gone",
		Event: eventOrphaned, EventType: corev1.EventTypeNormal,
		EventMessage: "The Rollout of this DaemonSet is gone, so Kubernetes rolls it out without steps",
	})
}
