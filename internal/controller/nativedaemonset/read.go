package nativedaemonset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/ondelete"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	DaemonSet *appsv1.DaemonSet
	Pods      []*corev1.Pod
	Revisions []*appsv1.ControllerRevision
	// Orphaned says that a release has the DaemonSet in hand, and that no Rollout and no BatchRelease names it.
	Orphaned bool
	// Outdated says that the DaemonSet has changed since it was read.
	Outdated bool
	Now      time.Time
}

// State is a Snapshot, classified once.
type State struct {
	Snapshot
	// released means that a release has the DaemonSet in hand, and has said how many Pods stay old.
	released bool
	control  ondelete.Control
	batch    ondelete.Batch
	// update is the revision of the present template; nil while that is not known.
	update *appsv1.ControllerRevision
	// problem is what can't be read in the annotation or the spec.
	problem error
}

func ofDaemonSet() schema.GroupKind {
	return schema.GroupKind{Group: appsv1.GroupName, Kind: "DaemonSet"}
}

// read makes every read of a pass.
func read(ctx context.Context, r loop.Reads, set *appsv1.DaemonSet) (State, error) {
	s := Snapshot{DaemonSet: set, Now: r.Now}
	if !steer.IsReleased(set) || set.DeletionTimestamp != nil {
		return Classify(s), nil
	}
	o := steer.Objects{Workload: set, Now: r.Now}
	if err := releases.ReadRest(ctx, r.Reader, &o); err != nil {
		return State{}, err
	}
	s.Pods, s.Revisions = o.Pods, o.Revisions
	var err error
	if s.Orphaned, err = releases.IsOrphaned(ctx, r, set, ofDaemonSet()); err != nil {
		return State{}, err
	}
	v := Classify(s)
	if gone, _ := v.next(); len(gone) == 0 {
		return v, nil
	}
	now := &appsv1.DaemonSet{}
	switch err := r.Tracked.Get(ctx, client.ObjectKeyFromObject(set), now); {
	case apierrors.IsNotFound(err):
		s.Outdated = true
	case err != nil:
		return State{}, fmt.Errorf("reading the DaemonSet before Pods are deleted: %w", err)
	default:
		s.Outdated = now.UID != set.UID || now.Generation != set.Generation ||
			now.Annotations[keys.DaemonSetControl] != set.Annotations[keys.DaemonSetControl]
	}
	return Classify(s), nil
}

// Classify returns the state of a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s}
	set := s.DaemonSet
	annotation, annotated := set.Annotations[keys.DaemonSetControl]
	v.released = annotated && steer.IsFrozenDaemonSet(set) && set.DeletionTimestamp == nil
	if !v.released {
		return v
	}
	v.update = steer.DaemonSetRevision(steer.Objects{Workload: set, Revisions: s.Revisions})
	v.batch.Desired = set.Status.DesiredNumberScheduled
	if v.control, v.batch.Keep, v.problem = ondelete.ParseControl(annotation); v.problem != nil {
		v.problem = fmt.Errorf("annotation %s: %w", keys.DaemonSetControl, v.problem)
		return v
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		v.batch.MaxUnavailable, v.problem = ondelete.MaxUnavailable(rolling.MaxUnavailable, v.batch.Desired)
	} else {
		v.batch.MaxUnavailable = 1
	}
	return v
}

// isUpdated tells whether a Pod is of the revision of the batch.
func (v *State) isUpdated(p *corev1.Pod) bool {
	return p.Labels[appsv1.ControllerRevisionHashLabelKey] == v.control.Revision
}

func (v *State) serves(p *corev1.Pod) bool {
	is, _ := pod.Available(p, v.DaemonSet.Spec.MinReadySeconds, v.Now)
	return is
}

// next returns the Pods to delete now, and what further ones wait for.
func (v *State) next() (gone []*corev1.Pod, wait string) {
	switch {
	case !v.released || v.problem != nil || v.Orphaned:
		return nil, ""
	case v.DaemonSet.Status.ObservedGeneration != v.DaemonSet.Generation || v.update == nil:
		return nil, "the status of the DaemonSet is not of its present spec"
	case v.update.Labels[appsv1.ControllerRevisionHashLabelKey] != v.control.Revision:
		return nil, "the template has changed, and the annotation does not say yet how many of its Pods may be made"
	case v.control.Paused:
		return nil, "the annotation says paused"
	}
	return ondelete.Next(v.batch, v.Pods, v.isUpdated, v.serves)
}
