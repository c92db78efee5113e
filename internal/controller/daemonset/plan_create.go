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
)

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
		s.b.Hold(plan.Hold{Name: creation.Wait[0], Why: fmt.Sprintf("%d nodes wait for their first Pod: partitionedScaling with partition %d", waiting, s.limits.Partition)})
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
		s.b.Hold(plan.Hold{Name: p.name, Why: err.Error(), Event: eventFailedCreate, Failure: plan.Scale})
		return
	}
	s.creates--
	s.b.Do(plan.Action{
		Verb: plan.Create, Concern: concern, After: created,
		What: fmt.Sprintf("on %s at revision %s", p.name, rev.Name), Why: why,
		Event: eventSuccessfulCreate, EventMessage: "Created pod: " + created.Name, FailedEvent: eventFailedCreate,
	})
}
