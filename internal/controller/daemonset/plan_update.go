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

// update takes the next step of the rollout on the nodes that it may touch. It leaves out nodes that should not run a Pod, but for those
// that surge leaves behind.
func (s *step) update() {
	nodes := s.nodes()
	if why := s.workload.WhyNotUpdating(); why != "" {
		old := 0
		for _, n := range nodes {
			if n.Old != nodeupdate.Absent {
				old++
			}
		}
		if old > 0 {
			s.b.Hold(plan.Hold{Why: fmt.Sprintf("%s: %d nodes are not at %s", why, old, s.workload.History.Update.Name)})
		}
		return
	}
	if s.surges() {
		s.surge(nodes)
		s.deleteUnreplaced()
		return
	}
	next := nodeupdate.Replace(nodes, s.limits)
	updater := s.workload.UpdaterTo(s.workload.History.Update, s.Options.InPlace)
	if details := s.strategy.InPlaceUpdateStrategy; details != nil {
		updater.GraceSeconds = details.GracePeriodSeconds
	}
	for _, name := range next.Take {
		s.replace(s.byName[name].old(), updater)
	}
	if waiting := len(next.Wait); waiting > 0 {
		s.b.Hold(plan.Hold{Name: next.Wait[0], Why: fmt.Sprintf("%d nodes wait: maxUnavailable %d is used up, %d have no available Pod", waiting, s.limits.MaxUnavailable, next.Used)})
	}
}

// surge creates new Pods beside old ones; managePair deletes the old ones later on.
func (s *step) surge(nodes []nodeupdate.Node) {
	next := nodeupdate.Surge(nodes, s.limits)
	for _, name := range next.Take {
		p := s.byName[name]
		s.createOn(p, s.workload.History.Update, plan.Rollout, fmt.Sprintf("it takes the place of %s", p.old().Pod.Name))
	}
	if waiting := len(next.Wait); waiting > 0 {
		s.b.Hold(plan.Hold{Name: next.Wait[0], Why: fmt.Sprintf("%d nodes wait: maxSurge %d is used up", waiting, s.limits.MaxSurge)})
	}
}

// deleteUnreplaced takes old Pods away from nodes that may keep a Pod and should get no new one: there is none whose coming it could
// wait for. One that is available goes only while more nodes than are wanted have an available Pod.
func (s *step) deleteUnreplaced() {
	available := 0
	for _, p := range s.nodeStates {
		if p.node != nil && slices.ContainsFunc(p.members, func(m *rollout.Member) bool { return m.Runs() && m.Available }) {
			available++
		}
	}
	for _, p := range s.nodeStates {
		m := p.old()
		if m == nil || !s.isUnreplaced(p) {
			continue
		}
		switch {
		case !m.Available:
		case available > s.desired:
			available--
		default:
			continue
		}
		s.remove(m, plan.Rollout, "its node should not run a Pod any more, and gets no new one")
	}
}

// isUnreplaced reports whether a surge takes the old Pod of the node away without a new one: the node does not fit any more, and
// neither the node selector leaves it out nor the partition all nodes.
func (s *step) isUnreplaced(p *nodeState) bool {
	keepsAll := s.limits.Partition > 0 && s.limits.Partition >= s.desired
	return p.node != nil && !p.verdict.Run && (p.selected || s.canary == nil) && !keepsAll
}

// replace brings the node of an old Pod to the update revision: in place where that is wanted and can be done, else the Pod goes, and a new
// one comes.
func (s *step) replace(m *rollout.Member, updater *rollout.Updater) {
	if m == nil || m.Settled {
		return
	}
	why := fmt.Sprintf("its node is to be at %s", s.workload.History.Update.Name)
	if s.inPlace() {
		refusal := updater.Refusal(m.Pod)
		if !pod.HasReadinessGate(m.Pod, pub.InPlaceUpdateReady) {
			refusal = "it was created without the readiness gate of in-place updates"
		}
		switch {
		case refusal == "" && s.changes == 0:
			s.late++
			return
		case refusal == "":
			s.changes--
			m.Settled = true
			updater.Update(m.Pod, why, s.b)
			return
		}
		why += ", and can't get there in place: " + refusal
	}
	s.remove(m, plan.Rollout, why)
}
