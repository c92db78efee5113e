package daemonset

import (
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
	eventFailedDaemonPod    = "FailedDaemonPod"
	eventSucceededDaemonPod = "SucceededDaemonPod"
	eventSelectingAll       = "SelectingAll"
)

// predecessorLook is how often is looked whether a DaemonSet of Kubernetes of the same name is gone, of which no event tells.
const predecessorLook = time.Second

// errSelectsAll is the problem of a DaemonSet that would own every Pod of its namespace.
//
//nolint:staticcheck // Wire: the message of an event
var errSelectsAll = errors.New("This daemon set is selecting all pods. A non-empty selector is required.")

// Plan decides the next step. It reads only the state and changes nothing but its notes of this pass.
//
// What is in flight is settled first, Pod by Pod, so that one odd node delays no other. Then every node gets its Pod, and what it has too
// many of is deleted. Both go on while the update is paused. The update comes last; it counts every node that lacks an available Pod for
// whatever reason.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	switch {
	case v.Set.DeletionTimestamp != nil:
		// The garbage collector takes the Pods and revisions along.
		return b.Plan()
	case errors.Is(v.problem, errSelectsAll):
		p := b.Stop(v.problem)
		p.Holds = append(p.Holds, plan.Hold{Code: reason.InvalidSpec, Why: v.problem.Error(), Event: eventSelectingAll})
		return p
	case v.problem != nil:
		return b.Stop(v.problem)
	case v.Predecessor:
		b.Hold(plan.Hold{
			Code: reason.WaitDeletion, Name: v.Set.Name, Failure: plan.Scale,
			Why: fmt.Sprintf("DaemonSet %s of Kubernetes is being deleted: no Pod is created until it has let go of its own", v.Set.Name),
		})
		b.Recheck(predecessorLook, "the DaemonSet of Kubernetes may be gone")
		return b.Plan()
	}
	rollout.WriteHistory(v.workload.History, b)
	if len(v.Orphans) > 0 {
		// They are adopted first. Only their metadata is known: the next pass knows which nodes they are on.
		for _, p := range v.Orphans {
			b.First(v.workload.Adopt(p))
		}
		return b.Plan()
	}
	s := &step{State: &v, b: b, used: v.namesInUse(), creates: v.burst, deletes: v.burst, changes: v.burst}
	s.settle()
	s.scale()
	s.update()
	s.preDownload()
	s.tidy()
	v.workload.Recheck(0, b)
	return v.workload.RecheckWaiting(v.members(), b.Plan())
}

// step is a plan in the making.
type step struct {
	*State
	b *plan.Builder
	// used are the names that new Pods can't have.
	used sets.Set[string]
	// creates, deletes and changes are how many more Pods may be created, deleted, and updated in place in this pass; late is how many
	// writes are left for the next one.
	creates, deletes, changes int
	late                      int
}

// summary describes the DaemonSet and its limits in a line.
func (v *State) summary() string {
	if v.problem != nil || v.Set.DeletionTimestamp != nil {
		return v.workload.Summary()
	}
	parts := []string{fmt.Sprintf("nodes %d", v.desired), fmt.Sprintf("pods %d", len(v.Pods))}
	switch {
	case v.workload.OnDelete:
		return v.workload.Summary(append(parts, "updates on delete")...)
	case v.inPlace():
		parts = append(parts, "in place if possible")
	}
	if v.workload.Paused {
		parts = append(parts, "paused")
	}
	if v.limits.Partition > 0 {
		parts = append(parts, rollout.Limit("partition", v.limits.Partition, v.strategy.Partition))
	}
	if v.canary != nil {
		parts = append(parts, fmt.Sprintf("nodes with %s", v.canary))
	}
	if v.surges() {
		parts = append(parts, rollout.Limit("maxSurge", v.limits.MaxSurge, v.strategy.MaxSurge))
	} else {
		parts = append(parts, rollout.Limit("maxUnavailable", v.limits.MaxUnavailable, v.strategy.MaxUnavailable))
	}
	return v.workload.Summary(parts...)
}

// settle finishes what is in flight on each Pod: grace periods, the next batch of containers, readiness, hooks.
func (s *step) settle() {
	for _, p := range s.nodeStates {
		for _, m := range p.members {
			if m.Runs() {
				s.workload.Settle(m, m.Updated || !s.inReach[p.name], s.b)
			}
		}
	}
}

// tidy releases Pods whose labels the selector does not match any more, says that not all that is due fits into this pass, and deletes
// revisions that are of no use. The writes of this pass bring about the next one.
func (s *step) tidy() {
	for _, p := range s.release {
		s.b.Do(s.workload.Release(p, "its labels do not match the selector any more"))
	}
	if s.late > 0 {
		s.b.Hold(plan.Hold{Code: reason.Updating, Why: fmt.Sprintf("%d more writes follow: burstReplicas is %d", s.late, s.burst)})
	}
	rollout.TrimHistory(s.workload.History, s.Set.Spec.RevisionHistoryLimit, s.memberPods(), s.b)
}

// preDownload has the images of an update pulled before the Pods are updated, in place or not: the nodes stay the same. All older revisions
// count as what Pods may be at.
func (s *step) preDownload() {
	if !s.Options.PreDownload {
		return
	}
	ready, done := 0, true
	for _, p := range s.nodeStates {
		if !p.verdict.Run {
			continue
		}
		updated := len(p.members) > 0 && p.members[0].Updated
		done = done && updated
		if updated && p.members[0].Ready {
			ready++
		}
	}
	var old []*appsv1.ControllerRevision
	for _, rev := range s.workload.History.All {
		if !s.workload.History.MeansUpdate(rev) {
			old = append(old, rev)
		}
	}
	s.workload.PreDownload(rollout.PreDownload{
		Old: old, Done: done || len(old) == 0, Pointless: s.pointless,
		UpdatedReady: ready, Tuning: rollout.Annotated(s.Set.Annotations, s.desired),
	}, s.b)
}

// pointless says why pulling images ahead would gain nothing; empty where it would gain something.
func (v *State) pointless() string {
	if !v.workload.OnDelete && v.limits.Partition == 0 && v.limits.MaxUnavailable >= v.desired {
		return "all nodes are updated at once"
	}
	return ""
}

// update takes the next step of the rollout on the nodes that it may touch. It leaves out nodes that should not run a Pod, but for those
// that surge leaves behind.
func (s *step) update() {
	nodes := s.nodes()
	if code, why := s.workload.WhyNotUpdating(); why != "" {
		old := 0
		for _, n := range nodes {
			if n.Old != nodeupdate.Absent {
				old++
			}
		}
		if old > 0 {
			s.b.Hold(plan.Hold{Code: code, Why: fmt.Sprintf("%s: %d nodes are not at %s", why, old, s.workload.History.Update.Name)})
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
		s.b.Hold(plan.Hold{Code: reason.WaitBudget, Name: next.Wait[0], Why: fmt.Sprintf(
			"%d nodes wait: maxUnavailable %d is used up, %d have no available Pod", waiting, s.limits.MaxUnavailable, next.Used)})
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
		s.b.Hold(plan.Hold{Code: reason.WaitBudget, Name: next.Wait[0], Why: fmt.Sprintf("%d nodes wait: maxSurge %d is used up", waiting,
			s.limits.MaxSurge)})
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
	why, notInPlace := fmt.Sprintf("its node is to be at %s", s.workload.History.Update.Name), ""
	if s.inPlace() {
		refusal := updater.Refusal(m.Pod)
		notInPlace = updater.RefusedField(m.Pod)
		if !pod.HasReadinessGate(m.Pod, pub.InPlaceUpdateReady) {
			refusal = "it was created without the readiness gate of in-place updates"
			notInPlace = "readinessGates"
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
	recreates(s.remove(m, plan.Rollout, why), notInPlace)
}

// recreates notes of a deletion, if there is one, that it is an update, and the field of the template that stands against one in place
// where that was wanted.
func recreates(deletion plan.Chain, notInPlace string) {
	if len(deletion) > 0 {
		deletion[0].Method, deletion[0].NotInPlace = plan.Recreate, notInPlace
	}
}
