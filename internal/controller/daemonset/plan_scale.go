package daemonset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// scale gives every node the Pod that it lacks, and deletes what it has too many of.
func (s *step) scale() {
	for _, p := range s.nodeStates {
		switch {
		case p.node == nil:
			s.leaveNode(p)
		case !p.verdict.Stay:
			for _, m := range p.members {
				s.remove(m, plan.Scale, "its node does not fit the template any more")
			}
		default:
			s.manageNode(p)
		}
	}
	s.create()
}

// leaveNode deletes Pods that wait for a node that is gone. The garbage collector of Pods deletes those that ran there.
func (s *step) leaveNode(p *nodeState) {
	for _, m := range p.members {
		if !pod.IsScheduled(m.Pod) {
			s.remove(m, plan.Scale, "its node is gone")
		}
	}
}

// manageNode sees that a node has one Pod that runs, or the two of a surge.
func (s *step) manageNode(p *nodeState) {
	for _, m := range p.members {
		if m.Ended && !m.Leaving {
			s.removeEnded(p, m)
		}
	}
	running := p.running()
	if s.surges() {
		s.managePair(p, running)
	} else {
		s.keepBest(p, running)
	}
	s.retryHeld(p, len(running))
}

// keepBest keeps the Pod that is closest to being available, of several the first, and returns it; nil when there is none.
func (s *step) keepBest(p *nodeState, all []*rollout.Member) *rollout.Member {
	if len(all) == 0 {
		return nil
	}
	best := all[0]
	for _, m := range all {
		if stateOf(m) > stateOf(best) {
			best = m
		}
	}
	for _, m := range all {
		if m != best {
			s.remove(m, plan.Scale, fmt.Sprintf("%s is on %s already", best.Pod.Name, p.name))
		}
	}
	return best
}

// managePair keeps a Pod of either side. The new one is there to take the old one's place once it is available; an old one that is not
// ready need not wait for that.
func (s *step) managePair(p *nodeState, running []*rollout.Member) {
	var old, updated []*rollout.Member
	for _, m := range running {
		if m.Updated {
			updated = append(updated, m)
		} else {
			old = append(old, m)
		}
	}
	switch was, is := s.keepBest(p, old), s.keepBest(p, updated); {
	case was == nil || is == nil:
	case !was.Ready:
		s.remove(was, plan.Rollout, fmt.Sprintf("it is not ready, and %s takes its place", is.Pod.Name))
	case is.Available:
		s.remove(was, plan.Rollout, fmt.Sprintf("%s is available", is.Pod.Name))
	default:
		s.b.Hold(plan.Hold{Name: was.Pod.Name, Why: fmt.Sprintf("it goes once %s is available", is.Pod.Name)})
	}
}

// retryHeld tries again to delete the Pods of a node that their preDelete hook held. Where none runs on the node, and nothing wants it
// gone any more, the first of them comes back into service: an update does that takes old Pods away before new ones come, and a surge
// on nodes that get no new one.
func (s *step) retryHeld(p *nodeState, running int) {
	for _, m := range p.members {
		switch {
		case !waitsToGo(m):
		case running == 0 && (m.Updated || !s.isUnwanted(p)):
			s.workload.CancelDeletion(m, pub.LifecycleStateNormal, s.b)
			running++
		default:
			s.remove(m, plan.Scale, "its preDelete hook let go")
		}
	}
}

// isUnwanted reports whether the update takes the old Pod of a node away although nothing runs there besides.
func (s *step) isUnwanted(p *nodeState) bool {
	if s.surges() {
		return s.isUnreplaced(p)
	}
	return s.inReach[p.name]
}

// removeEnded deletes a Pod that has run to its end, so that a new one comes; the sooner after the last one on that node, the later.
func (s *step) removeEnded(p *nodeState, m *rollout.Member) {
	if wait := s.Failures[p.name].retry().Sub(s.Now); wait > 0 {
		s.b.Hold(plan.Hold{Name: m.Pod.Name, Why: fmt.Sprintf("it has ended, as %d before it on %s: it is not replaced at once", s.Failures[p.name].Count, p.name)})
		s.b.Recheck(wait, fmt.Sprintf("%s may be replaced", m.Pod.Name))
		return
	}
	why := "it has ended"
	if m.Pod.Status.Phase == corev1.PodFailed {
		why = "it has failed"
	}
	chain := s.remove(m, plan.Scale, why)
	switch {
	case len(chain) == 0:
	case m.Pod.Status.Phase == corev1.PodFailed:
		s.b.Hold(plan.Hold{
			Name: m.Pod.Name, Event: eventFailedDaemonPod,
			Why: fmt.Sprintf("Found failed daemon pod %s/%s on node %s, will try to kill it", m.Pod.Namespace, m.Pod.Name, p.name),
		})
	default:
		chain[0].Event = eventSucceededDaemonPod
		chain[0].EventMessage = fmt.Sprintf("Found succeeded daemon pod %s/%s on node %s, will try to delete it", m.Pod.Namespace, m.Pod.Name, p.name)
	}
}

// remove deletes a Pod, or, while its preDelete hook holds it, has it wait in PreparingDelete. It returns the deletion, if it planned one.
func (s *step) remove(m *rollout.Member, concern plan.Concern, why string) plan.Chain {
	if m.Leaving || m.Settled {
		return nil
	}
	if s.workload.AwaitHook(m, concern, why, s.b) {
		m.Settled = true
		return nil
	}
	if s.deletes == 0 {
		s.late++
		return nil
	}
	s.deletes--
	m.Settled = true
	chain := plan.Chain{{
		Verb: plan.Delete, Concern: concern, Before: m.Pod, What: "delete", Why: why,
		Event: eventSuccessfulDelete, EventMessage: "Deleted pod: " + m.Pod.Name, FailedEvent: eventFailedDelete,
	}}
	s.b.Do(chain...)
	return chain
}
