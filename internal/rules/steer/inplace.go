package steer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// inPlace steers StatefulSets of Kubernetes. Pods with the label keys.InPlaceUpdate, which their template has as well, are updated in place
// where only images, labels and annotations change.
//
// The controller of StatefulSets goes by the label of a Pod with its revision, and recreates no Pod whose ordinal is below the partition.
// So the partition stays above a Pod until one write has given it the images and the label of the new revision, and comes down past it
// then, where that controller finds nothing left to do. A Pod that is deleted in between comes back at its old revision, and is updated
// again.
type inPlace struct{ partitioned }

// UpdatesInPlace tells whether a workload has Pods updated in place during a release although its own controller recreates them.
func UpdatesInPlace(workload Object) bool {
	set, is := workload.(*appsv1.StatefulSet)
	return is && set.Spec.Template.Labels[keys.InPlaceUpdate] == "true"
}

// ReadsRevisions tells whether a Kind needs the revisions of a workload (Objects.Revisions) at all times.
func ReadsRevisions(workload Object) bool {
	_, is := workload.(*appsv1.DaemonSet)
	return is || UpdatesInPlace(workload)
}

// runsItsRevision tells whether no update in place is under way on a Pod.
func runsItsRevision(p *corev1.Pod) bool { return inplace.Progress(p, inplace.Options{}).Done }

// Batch has Pods updated in place first, and sets the partition to those that are at the new revision, or can only be recreated.
func (k inPlace) Batch(o Objects, b Batch) (Writes, error) {
	w, err := k.partitioned.Batch(o, b)
	if err != nil || b.Paused || !UpdatesInPlace(o.Workload) {
		return w, err
	}
	return k.before(o, w), nil
}

// Promote has all Pods updated in place that can be before the StatefulSet goes on by itself.
func (k inPlace) Promote(o Objects) Writes {
	w := k.partitioned.Promote(o)
	if !UpdatesInPlace(o.Workload) {
		return w
	}
	return k.before(o, w)
}

// before returns what is to be written before the partition may be the one of these writes, or the writes if nothing is.
func (k inPlace) before(o Objects, w Writes) Writes {
	now, target := k.kept(k.read(o.Workload)), k.kept(k.read(w.Workload))
	if target >= now && w.Workload != o.Workload {
		return w // no further Pod is to be updated
	}
	s := k.survey(o)
	changes, kept := s.step(target)
	switch {
	case kept <= target:
		return Writes{First: changes, Workload: w.Workload}
	case kept >= now:
		return Writes{First: changes, Workload: o.Workload}
	}
	next, partition := copyOf(o.Workload), intstr.FromInt32(kept)
	k.write(next, &partition)
	return Writes{First: changes, Workload: next}
}

// survey is what there is of a StatefulSet.
type survey struct {
	Objects
	reading
	// pods are by the place that the partition counts: the ordinal, from the first one on. A Pod that is being deleted is none.
	pods map[int32]*corev1.Pod
	// revisions are by name.
	revisions map[string]*appsv1.ControllerRevision
	// room is how many further Pods may become unavailable.
	room int32
}

func (k inPlace) survey(o Objects) *survey {
	set := o.Workload.(*appsv1.StatefulSet)
	s := &survey{Objects: o, reading: k.read(set), pods: map[int32]*corev1.Pod{}, revisions: map[string]*appsv1.ControllerRevision{}}
	first := int32(0)
	if set.Spec.Ordinals != nil {
		first = set.Spec.Ordinals.Start
	}
	for _, p := range o.Pods {
		if _, n, ok := ordinal.Split(p.Name); ok && pod.IsActive(p) {
			s.pods[n-first] = p
		}
	}
	for _, r := range o.Revisions {
		s.revisions[r.Name] = r
	}
	s.room = maxUnavailable(set, s.replicas)
	for i := range s.replicas {
		if !s.serves(s.pods[i]) {
			s.room--
		}
	}
	return s
}

// maxUnavailable is how many Pods of a StatefulSet may be unavailable during an update: 1 if it does not say.
func maxUnavailable(set *appsv1.StatefulSet, replicas int32) int32 {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 1
	}
	n, err := budget.Scaled(rolling.MaxUnavailable, int(replicas), budget.Up)
	if err != nil {
		return 1
	}
	return max(int32(n), 1)
}

// serves tells whether a Pod is available, and runs what its label says.
func (s *survey) serves(p *corev1.Pod) bool {
	if p == nil {
		return false
	}
	is, _ := pod.Available(p, s.minReadySeconds, s.Now)
	return is && runsItsRevision(p)
}

// step returns the updates in place that are to be begun, or to go on, for Pods from a place on, and the lowest partition, not below that
// place, with which the controller of StatefulSets recreates no Pod that can be updated in place.
func (s *survey) step(target int32) (changes []Change, kept int32) {
	if s.observed != s.generation || s.revisions[s.update] == nil {
		return nil, s.replicas
	}
	kept, open := s.replicas, true // open until a Pod stands in the way of the partition
	for i := s.replicas - 1; i >= target; i-- {
		switch p := s.pods[i]; {
		case p == nil: // its controller makes it at the new revision
		case isAt(p, s.update):
			changes = append(changes, s.goOn(p)...)
		default:
			change, can := s.begin(p)
			switch {
			case can && (s.room > 0 || !s.serves(p)):
				s.take(p)
				changes = append(changes, change)
			case !can && open && (s.room > 0 || !s.serves(p)):
				s.room, kept = 0, i // it is recreated, and no other Pod becomes unavailable meanwhile
			}
			open = false
		}
		if open {
			kept = i
		}
	}
	return changes, kept
}

// take counts a Pod as unavailable.
func (s *survey) take(p *corev1.Pod) {
	if s.serves(p) {
		s.room--
	}
}

// begin returns the write that begins the update of a Pod; false if it can't be updated in place.
func (s *survey) begin(p *corev1.Pod) (Change, bool) {
	from, update := s.revisions[p.Labels[appsv1.ControllerRevisionHashLabelKey]], s.revisions[s.update]
	if from == nil || p.Labels[keys.InPlaceUpdate] != "true" {
		return Change{}, false
	}
	change, refusal := inplace.Diff(from, update, inplace.Options{})
	if refusal != nil {
		return Change{}, false
	}
	after := p.DeepCopy()
	inplace.Begin(after, change, inplace.Target{
		Revision: update.Name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: update.Name}, Now: s.Now,
	})
	inplace.Advance(after, inplace.Options{}, s.Now)
	return Change{Before: p, After: after, What: "update in place: " + change.String()}, true
}

// goOn returns the write that takes an update in place further, which has a container wait for another one.
func (s *survey) goOn(p *corev1.Pod) []Change {
	after := p.DeepCopy()
	if runsItsRevision(p) || !inplace.Advance(after, inplace.Options{}, s.Now).Changed {
		return nil
	}
	return []Change{{Before: p, After: after, What: "go on with the update in place"}}
}
