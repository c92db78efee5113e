package persistentpodstate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/podstate"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Event reasons. Wire: users' alerts match them.
const (
	// eventUnschedulable tells of a Pod for which the scheduler finds no node where it ran.
	eventUnschedulable = "PersistentPodStateUnschedulable"
	// eventReleased tells of a Pod that was deleted so that its next one can run elsewhere.
	eventReleased = "PersistentPodStateReleased"
	// eventTooMany tells of Pods for whose records there is no room.
	eventTooMany = "TooManyRecords"
)

const (
	// patience is how long a Pod may be unschedulable before that is told: often the Pod before it has only to go.
	patience = 10 * time.Second
	// nodeDelay is when to look again for a node that the cache does not know.
	nodeDelay = 10 * time.Second
)

// seen returns what the records follow from.
func (s Snapshot) seen() podstate.Seen {
	out := podstate.Seen{
		State: s.State, Gone: s.Target == nil || s.Target.Deleting, Pods: s.Pods, Nodes: s.Nodes, Now: s.Now,
	}
	if s.Target != nil {
		out.Places = s.Target.Places
	}
	return out
}

// Plan decides the next step. It reads only the snapshot and changes nothing. The records themselves are in the status.
func Plan(s Snapshot) plan.Plan {
	ref, seen := s.State.Spec.TargetRef, s.seen()
	b := plan.For(fmt.Sprintf("PersistentPodState %s/%s   %s %s   pods %d   records %d",
		s.State.Namespace, s.State.Name, ref.Kind, ref.Name, len(s.Pods), len(s.State.Status.PodStates)))
	if s.State.DeletionTimestamp != nil {
		return b.Plan()
	}
	for _, p := range s.Pods {
		s.release(b, seen, p)
		if podstate.NeedsNode(s.State, p) && s.Nodes[p.Spec.NodeName] == nil {
			b.Recheck(nodeDelay, "node "+p.Spec.NodeName+" is not known")
		}
	}
	for _, w := range s.waiting() {
		b.Hold(plan.Hold{Code: reason.WaitSchedule, Name: w.pod.Name, Why: w.text, Event: eventUnschedulable})
	}
	records, beyond := seen.Records()
	if len(beyond) > 0 {
		b.Hold(plan.Hold{Code: reason.Held, Event: eventTooMany, Why: tooMany(beyond)})
	}
	b.Recheck(seen.UntilDropped(records), "a record is too old")
	if s.Target != nil && s.Target.Polled {
		b.Recheck(observe.ScaleTTL, "nothing tells when "+ref.Kind+" "+ref.Name+" changes")
	}
	return b.Plan()
}

// release deletes a Pod that could not be scheduled where it ran for too long, where the spec asks for it. Its record goes first, in the
// status: else the next Pod would be bound to it again.
func (s Snapshot) release(b *plan.Builder, seen podstate.Seen, p *corev1.Pod) {
	since, _, waits := podstate.Unscheduled(s.State, p)
	if !waits {
		return
	}
	b.Recheck(since.Add(patience).Sub(s.Now), "Pod "+p.Name+" is not scheduled")
	left, limited := seen.UntilOverdue(p)
	b.Recheck(left, "Pod "+p.Name+" is not scheduled")
	_, recorded := s.State.Status.PodStates[p.Name]
	if !limited || left > 0 || recorded || s.State.Spec.Fallback.Action != v1beta1.PersistentPodStateFallbackDelete {
		return
	}
	why := fmt.Sprintf("no node was found for it where it ran within %d seconds", s.State.Spec.Fallback.AfterSeconds)
	b.Do(plan.Action{
		Verb: plan.Delete, Concern: plan.Settle, Before: p, What: "delete", Why: why,
		Event: eventReleased, EventMessage: fmt.Sprintf("deleted Pod %s: %s; the next one is free to run elsewhere", p.Name, why),
		FailedEvent: eventReleased, FailedPrefix: "deleting Pod " + p.Name + ": ",
	})
}

// wait is a Pod that waits to be scheduled where it ran, and what is to be said of it.
type wait struct {
	pod  *corev1.Pod
	text string
}

// waiting returns the Pods that have been unschedulable for a while, by name.
func (s Snapshot) waiting() []wait {
	var out []wait
	for _, p := range s.Pods {
		since, message, waits := podstate.Unscheduled(s.State, p)
		if !waits || s.Now.Sub(since) < patience {
			continue
		}
		text := fmt.Sprintf("Pod %s is not scheduled", p.Name)
		if record, ok := s.State.Status.PodStates[p.Name]; ok {
			text += " where it ran: " + podstate.Describe(record)
		}
		text += " (" + message + "); free that place, or delete the Pod after removing the key from spec.requiredPersistentTopology"
		if f := s.State.Spec.Fallback; f != nil {
			text = fmt.Sprintf("%s; spec.fallback drops its record after %d seconds", text, f.AfterSeconds)
		}
		out = append(out, wait{p, text})
	}
	slices.SortFunc(out, func(a, b wait) int {
		if a.pod.Name < b.pod.Name {
			return -1
		}
		return 1
	})
	return out
}

func tooMany(beyond []string) string {
	return fmt.Sprintf("there is no room for the records of %d Pods, from %s on; name fewer keys and annotations in spec",
		len(beyond), beyond[0])
}
