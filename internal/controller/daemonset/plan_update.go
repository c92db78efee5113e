package daemonset

import (
	"fmt"
	"slices"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// update takes the next step of the rollout on the nodes that it may touch. Nodes that should not run a Pod are none of its business, but for those
// that surge leaves behind.
func (s *step) update() {
	nodes := s.nodes()
	if why := (rollout.Rest{OnDelete: s.onDelete(), Paused: s.paused()}).Why(); why != "" {
		old := 0
		for _, n := range nodes {
			if n.Old != nodeupdate.Absent {
				old++
			}
		}
		if old > 0 {
			s.b.Hold(plan.Hold{Why: fmt.Sprintf("%s: %d nodes are not at %s", why, old, s.history.Update.Name)})
		}
		return
	}
	if s.surges() {
		s.surge(nodes)
		s.sunset()
		return
	}
	next := nodeupdate.Replace(nodes, s.limits)
	ways := rollout.WaysTo(s.history.Update, s.history, s.Options.InPlace)
	for _, name := range next.Take {
		s.replace(s.byName[name].old(), ways)
	}
	if waiting := len(next.Wait); waiting > 0 {
		s.b.Hold(plan.Hold{Name: next.Wait[0], Why: fmt.Sprintf("%d nodes wait: maxUnavailable %d is used up, %d have no available Pod", waiting, s.limits.MaxUnavailable, next.Used)})
	}
}

// surge creates new Pods beside old ones; tending the pairs later on takes the old ones away.
func (s *step) surge(nodes []nodeupdate.Node) {
	next := nodeupdate.Surge(nodes, s.limits)
	for _, name := range next.Take {
		p := s.byName[name]
		s.createOn(p, s.history.Update, plan.Rollout, fmt.Sprintf("it takes the place of %s", p.old().pod.Name))
	}
	if waiting := len(next.Wait); waiting > 0 {
		s.b.Hold(plan.Hold{Name: next.Wait[0], Why: fmt.Sprintf("%d nodes wait: maxSurge %d is used up", waiting, s.limits.MaxSurge)})
	}
}

// sunset takes old Pods away from nodes that may keep a Pod and should get no new one: there is none whose coming it could wait for. One that is
// available goes only while more nodes than are wanted have an available Pod.
func (s *step) sunset() {
	available := 0
	for _, p := range s.places {
		if p.node != nil && slices.ContainsFunc(p.members, func(m *member) bool { return m.runs() && m.available }) {
			available++
		}
	}
	for _, p := range s.places {
		m := p.old()
		if m == nil || !s.sunsets(p) {
			continue
		}
		switch {
		case !m.available:
		case available > s.desired:
			available--
		default:
			continue
		}
		s.remove(m, plan.Rollout, "its node should not run a Pod any more, and gets no new one")
	}
}

// sunsets reports whether a surge takes the old Pod of the node away without a new one: the node does not fit any more, and neither the node
// selector leaves it out nor the partition all nodes.
func (s *step) sunsets(p *place) bool {
	keepsAll := s.limits.Partition > 0 && s.limits.Partition >= s.desired
	return p.node != nil && !p.verdict.Run && (p.selected || s.canary == nil) && !keepsAll
}

// replace brings the node of an old Pod to the update revision: in place where that is wanted and can be done, else the Pod goes, and a new one
// comes.
func (s *step) replace(m *member, ways *rollout.Ways) {
	if m == nil || m.settled {
		return
	}
	why := fmt.Sprintf("its node is to be at %s", s.history.Update.Name)
	if s.inPlace() {
		way := ways.From(m.pod)
		if !pod.HasReadinessGate(m.pod, pub.InPlaceUpdateReady) {
			way.Refusal = "it was created without the readiness gate of in-place updates"
		}
		if way.Refusal == "" {
			s.changeInPlace(m, way, why)
			return
		}
		why += ", and can't get there in place: " + way.Refusal
	}
	s.remove(m, plan.Rollout, why)
}

func (s *step) changeInPlace(m *member, way rollout.Way, why string) {
	if s.changes == 0 {
		s.late++
		return
	}
	s.changes--
	m.settled = true
	grace := int32(0)
	if details := s.strategy.InPlaceUpdateStrategy; details != nil {
		grace = details.GracePeriodSeconds
	}
	s.workload().UpdateInPlace(rollout.Update{
		Pod: m.pod, Target: s.history.Update, Change: way.Change, GraceSeconds: grace, Why: why,
	}, s.b)
}
