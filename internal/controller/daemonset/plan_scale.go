package daemonset

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/nodeupdate"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
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
		recreates(s.remove(was, plan.Rollout, fmt.Sprintf("it is not ready, and %s takes its place", is.Pod.Name)), "")
	case is.Available:
		recreates(s.remove(was, plan.Rollout, fmt.Sprintf("%s is available", is.Pod.Name)), "")
	default:
		s.b.Hold(plan.Hold{Code: reason.WaitReplacement, Name: was.Pod.Name, Why: fmt.Sprintf("it goes once %s is available", is.Pod.Name)})
	}
}

// retryHeld tries again to delete the Pods of a node that their preDelete hook held. Where none runs on the node, and nothing wants it
// gone any more, the first of them comes back into service: an update does that takes old Pods away before new ones come, and a surge
// on nodes that get no new one.
func (s *step) retryHeld(p *nodeState, running int) {
	for _, m := range p.members {
		switch {
		case m.Leaving || m.Ended || !m.IsHeld():
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
		s.b.Hold(plan.Hold{Code: reason.ContainerBroken, Name: m.Pod.Name, Why: fmt.Sprintf(
			"it has ended, as %d before it on %s: it is not replaced at once", s.Failures[p.name].Count, p.name)})
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
			Code: reason.ContainerBroken, Name: m.Pod.Name, Event: eventFailedDaemonPod,
			Why: fmt.Sprintf("Found failed daemon pod %s/%s on node %s, will try to kill it", m.Pod.Namespace, m.Pod.Name, p.name),
		})
	default:
		chain[0].Event = eventSucceededDaemonPod
		chain[0].EventMessage = fmt.Sprintf(
			"Found succeeded daemon pod %s/%s on node %s, will try to delete it", m.Pod.Namespace, m.Pod.Name, p.name)
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
		Event: rollout.EventSuccessfulDelete, EventMessage: "Deleted pod: " + m.Pod.Name, FailedEvent: rollout.EventFailedDelete,
	}}
	s.b.Do(chain...)
	return chain
}

// daemonScheduler is the scheduler of Pods that need none, because they are created with their node.
const daemonScheduler = "kubernetes.io/daemonset-controller"

// namesInUse are the names that new Pods can't have.
func (v *State) namesInUse() sets.Set[string] {
	used := sets.New(v.Taken...)
	for _, p := range v.Pods {
		used.Insert(p.Name)
	}
	return used
}

// newPod returns the Pod of a node at a revision.
func (s *step) newPod(at *nodeState, rev *appsv1.ControllerRevision) (*corev1.Pod, error) {
	template, err := s.workload.History.Template(rev, &s.Set.Spec.Template)
	if err != nil {
		return nil, err
	}
	p := s.workload.NewPod(template, rev)
	p.Name = pod.NewName(s.Set.Name, s.used, string(s.Set.UID), at.name, string(at.node.UID), rev.Name)
	if generation := s.Set.Annotations[keys.TemplateGeneration]; generation != "" {
		p.Labels[keys.PodTemplateGeneration] = generation
	}
	pod.AddReadinessGates(p, s.gates()...)
	p.Spec.Tolerations = nodefit.Tolerations(&p.Spec)
	if s.Options.BindPods {
		p.Spec.NodeName, p.Spec.SchedulerName = at.name, daemonScheduler
	} else {
		nodefit.Pin(&p.Spec, at.name)
	}
	return p, nil
}

// gates returns the readiness gates by which new Pods can be taken out of service; each Pod that has any costs a write more.
func (v *State) gates() []corev1.PodConditionType {
	if v.inPlace() {
		return []corev1.PodConditionType{pub.InPlaceUpdateReady, pub.KruisePodReady}
	}
	if hooks := v.workload.Lifecycle; hooks != nil && hooks.PreDelete != nil && hooks.PreDelete.MarkPodNotReady {
		return []corev1.PodConditionType{pub.KruisePodReady}
	}
	return nil
}

// lacks reports whether a node that should run a Pod is to get one. Without surge it waits until the one before is gone altogether. A Pod
// that has ended is to be deleted first, at its own pace.
func (s *step) lacks(p *nodeState) bool {
	if !p.verdict.Run {
		return false
	}
	return !slices.ContainsFunc(p.members, func(m *rollout.Member) bool { return !m.Leaving || !s.surges() })
}

// create gives the nodes their Pod that lack one.
func (s *step) create() {
	var lacking []*nodeState
	for _, p := range s.nodeStates {
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
		s.createOn(p, s.workload.History.Update, plan.Scale, "the node has none")
	}
}

func (s *step) createByPartition() {
	progress := nodeupdate.Progress{Partition: min(s.limits.Partition, s.desired), Known: int(s.Set.Status.CurrentNumberScheduled)}
	var places []nodeupdate.Place
	for _, p := range s.nodeStates {
		if !p.verdict.Run {
			continue
		}
		places = append(places, nodeupdate.Place{Name: p.name, HasPod: !s.lacks(p)})
		if slices.ContainsFunc(p.members, func(m *rollout.Member) bool { return m.Updated }) {
			progress.Updated++
		}
	}
	creation := nodeupdate.Create(places, progress)
	for _, name := range creation.Update {
		s.createOn(s.byName[name], s.workload.History.Update, plan.Scale, "the node has none")
	}
	old := s.mostCommonOld()
	for _, name := range creation.Old {
		s.createOn(s.byName[name], old, plan.Scale, "the node lost its own, and the partition keeps it at its revision")
	}
	if waiting := len(creation.Wait); waiting > 0 {
		s.b.Hold(plan.Hold{Code: reason.HeldByPartition, Name: creation.Wait[0], Why: fmt.Sprintf(
			"%d nodes wait for their first Pod: partitionedScaling with partition %d", waiting, s.limits.Partition)})
	}
}

// mostCommonOld returns the older revision that most nodes are at; the update revision where none is.
func (s *step) mostCommonOld() *appsv1.ControllerRevision {
	counts := map[string]int{}
	best := s.workload.History.Update
	for _, p := range s.nodeStates {
		m := p.old()
		if m == nil {
			continue
		}
		rev := s.workload.History.Of(m.Pod)
		if rev == nil {
			continue
		}
		counts[rev.Name]++
		if best == s.workload.History.Update || counts[rev.Name] > counts[best.Name] {
			best = rev
		}
	}
	return best
}

// createOn gives a node a Pod at a revision.
func (s *step) createOn(p *nodeState, rev *appsv1.ControllerRevision, concern plan.Concern, why string) {
	if s.creates == 0 {
		s.late++
		return
	}
	created, err := s.newPod(p, rev)
	if err != nil {
		s.b.Hold(plan.Hold{Code: reason.InvalidSpec, Name: p.name, Why: err.Error(), Event: rollout.EventFailedCreate, Failure: plan.Scale})
		return
	}
	s.creates--
	action := rollout.CreatePod(created, rev, "Created pod: "+created.Name)
	action.Concern, action.What, action.Why = concern, fmt.Sprintf("on %s at revision %s", p.name, rev.Name), why
	s.b.Do(action)
}
