package steer

import (
	"cmp"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/ondelete"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// nativeDaemonSet steers DaemonSets of Kubernetes, which have no partition. During a release the type of their update strategy is OnDelete,
// and nothing else of their spec is changed: their own controller makes a Pod of the present template wherever one is gone, and the
// controller of native DaemonSets deletes as many old ones as an annotation says.
type nativeDaemonSet struct{}

func (nativeDaemonSet) Type() string { return "daemonset" }

func (nativeDaemonSet) Refuses(o Objects) string {
	set := o.Workload.(*appsv1.DaemonSet)
	_, noted := set.Annotations[keys.DaemonSetOriginalStrategy]
	switch {
	case set.Status.DesiredNumberScheduled == 0:
		return "it has no Pods"
	case set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType && !noted:
		return "its updateStrategy is OnDelete"
	}
	return ""
}

// Freeze has no Pod replaced, and notes what its user wrote. What was decided about an earlier template is dropped.
func (nativeDaemonSet) Freeze(o Objects) Object {
	next := withoutAnnotations(copyOf(o.Workload), keys.DaemonSetControl).(*appsv1.DaemonSet)
	freezeDaemonSet(next)
	return next
}

// freezeDaemonSet changes a DaemonSet.
func freezeDaemonSet(set *appsv1.DaemonSet) {
	strategy := &set.Spec.UpdateStrategy
	if strategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return
	}
	annotate(set, keys.DaemonSetOriginalStrategy, string(cmp.Or(strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)))
	strategy.Type = appsv1.OnDeleteDaemonSetStrategyType
}

// Guard keeps a DaemonSet frozen whose manifest somebody writes back. What ends a release takes the note of the user's strategy away.
func (nativeDaemonSet) Guard(old Object, o Objects) Object {
	was, is := old.(*appsv1.DaemonSet), o.Workload.(*appsv1.DaemonSet)
	_, noted := is.Annotations[keys.DaemonSetOriginalStrategy]
	isReplaced := is.Labels[keys.WorkloadType] == ""
	if !IsFrozenDaemonSet(was) || is.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || !noted && !isReplaced {
		return o.Workload
	}
	next := copyOf(is).(*appsv1.DaemonSet)
	freezeDaemonSet(next)
	return next
}

// IsFrozenDaemonSet tells whether a release has a DaemonSet update no Pod by itself.
func IsFrozenDaemonSet(set *appsv1.DaemonSet) bool {
	return IsReleased(set) && set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
}

func (k nativeDaemonSet) See(o Objects) Facts {
	set := o.Workload.(*appsv1.DaemonSet)
	f := Facts{RevisionLabel: appsv1.ControllerRevisionHashLabelKey}
	update := DaemonSetRevision(o)
	f.Generation = set.Generation
	f.Settled = set.Status.ObservedGeneration == set.Generation && update != nil
	_, f.Marked = MarkOf(set)
	f.Replicas = set.Status.DesiredNumberScheduled
	f.Frozen = IsFrozenDaemonSet(set)
	if update == nil { // its controller has yet to store what the template says
		return f
	}
	f.Update, f.PodHash = update.Name, hashOfRevision(update)
	f.ReleaseID = cmp.Or(ReleaseID(set), f.Update)
	f.Updated, f.Ready = count(o, func(p *corev1.Pod) bool { return isAt(p, f.Update) })
	f.Stable, f.StableHash = k.oldest(o, update)
	f.Mixed = f.Updated > 0 && int(f.Updated) < live(o)
	return f
}

// DaemonSetRevision returns the revision of the template that a DaemonSet has; nil while its controller has not stored it, or while what
// was read of revisions is older than the DaemonSet.
func DaemonSetRevision(o Objects) *appsv1.ControllerRevision {
	newest := newestOf(o.Revisions)
	if newest == nil {
		return nil
	}
	template, err := revision.Template(newest)
	if err != nil || !SameTemplate(template, &o.Workload.(*appsv1.DaemonSet).Spec.Template) {
		return nil
	}
	return newest
}

func newestOf(revisions []*appsv1.ControllerRevision) (newest *appsv1.ControllerRevision) {
	for _, r := range revisions {
		if newest == nil || cmp.Or(cmp.Compare(r.Revision, newest.Revision), cmp.Compare(r.Name, newest.Name)) > 0 {
			newest = r
		}
	}
	return newest
}

// oldest returns the revision of the Pod that is there longest of those that are not updated, and its hash; the new one if there is none.
// The status does not tell what a release came from, and a second template in the middle has newer Pods.
func (nativeDaemonSet) oldest(o Objects, update *appsv1.ControllerRevision) (name, hash string) {
	var oldest *corev1.Pod
	for _, p := range o.Pods {
		if p.DeletionTimestamp == nil && !isAt(p, update.Name) && p.Labels[appsv1.ControllerRevisionHashLabelKey] != "" &&
			(oldest == nil || p.CreationTimestamp.Before(&oldest.CreationTimestamp)) {
			oldest = p
		}
	}
	if oldest == nil {
		return update.Name, hashOfRevision(update)
	}
	hash = oldest.Labels[appsv1.ControllerRevisionHashLabelKey]
	for _, r := range o.Revisions {
		if hashOfRevision(r) == hash {
			return r.Name, hash
		}
	}
	return hash, hash
}

// hashOfRevision returns the value of the label of Pods of a revision.
func hashOfRevision(r *appsv1.ControllerRevision) string {
	return cmp.Or(r.Labels[appsv1.ControllerRevisionHashLabelKey], revision.ShortHash(r.Name))
}

// Updated goes by the newest revision. Whether that is the one of the template is looked at by See.
func (nativeDaemonSet) Updated(o Objects) func(*corev1.Pod) bool {
	newest := newestOf(o.Revisions)
	return func(p *corev1.Pod) bool { return newest != nil && isAt(p, newest.Name) }
}

func (nativeDaemonSet) Planned(o Objects, step *intstr.IntOrString) (int32, error) {
	return release.Planned(step, o.Workload.(*appsv1.DaemonSet).Status.DesiredNumberScheduled)
}

// Batch says in the annotation how many Pods stay old, and of which revision the others are to be.
func (k nativeDaemonSet) Batch(o Objects, b Batch) (Writes, error) {
	set, update := o.Workload.(*appsv1.DaemonSet), DaemonSetRevision(o)
	planned, err := k.Planned(o, b.Step)
	replicas := set.Status.DesiredNumberScheduled
	if err == nil && b.Kept != nil {
		planned, err = release.RolledBack(b.Step, replicas, *b.Kept)
	}
	if err != nil {
		return Writes{}, fmt.Errorf("steps: %w", err)
	}
	if update == nil {
		return unchanged(o), nil
	}
	control := ondelete.Control{
		Partition: strconv.Itoa(int(max(replicas-planned, 0))), Revision: hashOfRevision(update), Paused: b.Paused,
	}
	next := copyOf(set).(*appsv1.DaemonSet)
	freezeDaemonSet(next) // also if somebody has written it while no webhook was there
	annotate(next, keys.DaemonSetControl, control.String())
	if equality.Semantic.DeepEqual(next, set) {
		return unchanged(o), nil
	}
	return Writes{Workload: next}, nil
}

// Promote gives a DaemonSet the strategy back that its user wrote, with which its own controller goes on.
func (nativeDaemonSet) Promote(o Objects) Writes {
	set := o.Workload.(*appsv1.DaemonSet)
	if !IsReleased(set) {
		return unchanged(o)
	}
	next := withoutAnnotations(set, keys.DaemonSetControl, keys.DaemonSetOriginalStrategy, keys.DaemonSetRevision)
	if IsFrozenDaemonSet(set) { // what its user wrote was another type, else it would not have been released
		next = copyOf(next)
		next.(*appsv1.DaemonSet).Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
	return Writes{Workload: next}
}

func (nativeDaemonSet) Remains(o Objects) string {
	set, update := o.Workload.(*appsv1.DaemonSet), DaemonSetRevision(o)
	if set.Status.ObservedGeneration != set.Generation || update == nil {
		return "its status is not up to date"
	}
	isUpdated := func(p *corev1.Pod) bool { return isAt(p, update.Name) }
	done, replicas := available(o, isUpdated, set.Spec.MinReadySeconds), set.Status.DesiredNumberScheduled
	if done >= replicas {
		return ""
	}
	return fmt.Sprintf("%d of %d Pods are updated and available", done, replicas)
}
