package daemonset

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// manage looks after every node: what it has too much goes, and it gets what it lacks.
func (s *step) manage() {
	for _, p := range s.places {
		switch {
		case p.node == nil:
			s.leaveNode(p)
		case !p.verdict.Stay:
			for _, m := range p.members {
				s.remove(m, plan.Scale, "its node does not fit the template any more")
			}
		default:
			s.tend(p)
		}
	}
	s.create()
}

// leaveNode deletes Pods that wait for a node that is gone. The garbage collector of Pods sees to those that ran there.
func (s *step) leaveNode(p *place) {
	for _, m := range p.members {
		if !pod.IsScheduled(m.pod) {
			s.remove(m, plan.Scale, "its node is gone")
		}
	}
}

// tend sees that a node has one Pod that runs, or the two of a surge.
func (s *step) tend(p *place) {
	for _, m := range p.members {
		if m.ended && !m.leaving {
			s.removeEnded(p, m)
		}
	}
	running := p.running()
	if s.surges() {
		s.tendPair(p, running)
	} else {
		s.keepBest(p, running)
	}
	s.tendHooked(p, len(running))
}

// keepBest keeps the Pod that is of most use, of several the one that speaks for the node, and returns it; nil when there is none.
func (s *step) keepBest(p *place, all []*member) *member {
	if len(all) == 0 {
		return nil
	}
	best := all[0]
	for _, m := range all {
		if m.use() > best.use() {
			best = m
		}
	}
	for _, m := range all {
		if m != best {
			s.remove(m, plan.Scale, fmt.Sprintf("%s is on %s already", best.pod.Name, p.name))
		}
	}
	return best
}

// tendPair keeps a Pod of either side. The new one is there to take the old one's place once it is available; an old one that serves nobody need
// not wait for that.
func (s *step) tendPair(p *place, running []*member) {
	var old, updated []*member
	for _, m := range running {
		if m.updated {
			updated = append(updated, m)
		} else {
			old = append(old, m)
		}
	}
	switch was, is := s.keepBest(p, old), s.keepBest(p, updated); {
	case was == nil || is == nil:
	case !was.ready:
		s.remove(was, plan.Rollout, fmt.Sprintf("it is not ready, and %s takes its place", is.pod.Name))
	case is.available:
		s.remove(was, plan.Rollout, fmt.Sprintf("%s is available", is.pod.Name))
	default:
		s.b.Hold(plan.Hold{Name: was.pod.Name, Why: fmt.Sprintf("it goes once %s is available", is.pod.Name)})
	}
}

// tendHooked tries again to delete the Pods of a node that their preDelete hook held. Where none runs on the node, and nothing wants it gone any
// more, the first of them comes back into service: an update does that takes old Pods away before new ones come, and a surge on nodes that get no
// new one.
func (s *step) tendHooked(p *place, running int) {
	for _, m := range p.members {
		switch {
		case !m.waitsToGo():
		case running == 0 && (m.updated || !s.unwanted(p)):
			s.b.Do(s.workload().ComeBack(m.pod, pub.LifecycleStateNormal)...)
			m.settled = true
			running++
		default:
			s.remove(m, plan.Scale, "its preDelete hook let go")
		}
	}
}

// unwanted reports whether the update takes the old Pod of a node away although nothing runs there besides.
func (s *step) unwanted(p *place) bool {
	if s.surges() {
		return s.sunsets(p)
	}
	return s.kept[p.name]
}

// removeEnded deletes a Pod that has run to its end, so that a new one comes; the sooner after the last one on that node, the later.
func (s *step) removeEnded(p *place, m *member) {
	if wait := s.Failures[p.name].retry().Sub(s.Now); wait > 0 {
		s.b.Hold(plan.Hold{Name: m.pod.Name, Why: fmt.Sprintf("it has ended, as %d before it on %s: it is not replaced at once", s.Failures[p.name].Count, p.name)})
		s.b.Recheck(wait, fmt.Sprintf("%s may be replaced", m.pod.Name))
		return
	}
	why := "it has ended"
	if m.pod.Status.Phase == corev1.PodFailed {
		why = "it has failed"
	}
	chain := s.remove(m, plan.Scale, why)
	switch {
	case len(chain) == 0:
	case m.pod.Status.Phase == corev1.PodFailed:
		s.b.Hold(plan.Hold{
			Name: m.pod.Name, Event: eventFailedDaemonPod,
			Why: fmt.Sprintf("Found failed daemon pod %s/%s on node %s, will try to kill it", m.pod.Namespace, m.pod.Name, p.name),
		})
	default:
		chain[0].Event = eventSucceededDaemonPod
		chain[0].EventMessage = fmt.Sprintf("Found succeeded daemon pod %s/%s on node %s, will try to delete it", m.pod.Namespace, m.pod.Name, p.name)
	}
}

// remove deletes a Pod, or, while its preDelete hook holds it, has it wait in PreparingDelete. It returns the deletion, if it planned one.
func (s *step) remove(m *member, concern plan.Concern, why string) plan.Chain {
	if m.leaving || m.settled {
		return nil
	}
	if waits, _ := s.workload().AwaitHook(m.pod, concern, why, s.b); waits {
		m.settled = true
		return nil
	}
	if s.deletes == 0 {
		s.late++
		return nil
	}
	s.deletes--
	m.settled = true
	chain := plan.Chain{{
		Verb: plan.Delete, Concern: concern, Before: m.pod, What: "delete", Why: why,
		Event: eventSuccessfulDelete, EventMessage: "Deleted pod: " + m.pod.Name, FailedEvent: eventFailedDelete,
	}}
	s.b.Do(chain...)
	return chain
}

// lacks reports whether a node that should run a Pod is to get one. Without surge it waits until the one before is gone altogether. A Pod that has
// ended is to be deleted first, at its own pace.
func (s *step) lacks(p *place) bool {
	if !p.verdict.Run {
		return false
	}
	return !slices.ContainsFunc(p.members, func(m *member) bool { return !m.leaving || !s.surges() })
}

// create gives the nodes their Pod that lack one.
func (s *step) create() {
	var lacking []*place
	for _, p := range s.places {
		if s.lacks(p) {
			lacking = append(lacking, p)
		}
	}
	if len(lacking) == 0 {
		return
	}
	if scale := s.Set.Spec.ScaleStrategy; scale != nil && scale.PartitionedScaling && s.limits.Partition > 0 {
		s.createByPartition()
		return
	}
	for _, p := range lacking {
		s.createOn(p, s.history.Update, plan.Scale, "the node has none")
	}
}

func (s *step) createByPartition() {
	progress := nodeupdate.Progress{Partition: min(s.limits.Partition, s.desired), Known: int(s.Set.Status.CurrentNumberScheduled)}
	var places []nodeupdate.Place
	for _, p := range s.places {
		if !p.verdict.Run {
			continue
		}
		places = append(places, nodeupdate.Place{Name: p.name, HasPod: !s.lacks(p)})
		if slices.ContainsFunc(p.members, func(m *member) bool { return m.updated }) {
			progress.Updated++
		}
	}
	creation := nodeupdate.Create(places, progress)
	for _, name := range creation.Update {
		s.createOn(s.byName[name], s.history.Update, plan.Scale, "the node has none")
	}
	old := s.mostCommonOld()
	for _, name := range creation.Old {
		s.createOn(s.byName[name], old, plan.Scale, "the node lost its own, and the partition keeps it at its revision")
	}
	if waiting := len(creation.Wait); waiting > 0 {
		s.b.Hold(plan.Hold{Name: creation.Wait[0], Why: fmt.Sprintf("%d nodes wait for their first Pod: partitionedScaling with partition %d", waiting, s.limits.Partition)})
	}
}

// mostCommonOld returns the older revision that most nodes are at; the update revision where none is.
func (s *step) mostCommonOld() *appsv1.ControllerRevision {
	counts := map[string]int{}
	best := s.history.Update
	for _, p := range s.places {
		m := p.old()
		if m == nil {
			continue
		}
		rev := s.history.Of(m.pod)
		if rev == nil {
			continue
		}
		counts[rev.Name]++
		if best == s.history.Update || counts[rev.Name] > counts[best.Name] {
			best = rev
		}
	}
	return best
}

// createOn gives a node a Pod at a revision.
func (s *step) createOn(p *place, rev *appsv1.ControllerRevision, concern plan.Concern, why string) {
	if s.creates == 0 {
		s.late++
		return
	}
	action, err := s.pods.create(p, rev, why)
	if err != nil {
		s.b.Hold(plan.Hold{Name: p.name, Why: err.Error(), Event: eventFailedCreate, Failure: plan.Scale})
		return
	}
	s.creates--
	action.Concern = concern
	s.b.Do(action)
}
