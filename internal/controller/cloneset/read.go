package cloneset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Set *v1beta1.CloneSet
	// Pods are those that the CloneSet controls.
	Pods []*corev1.Pod
	// Claims are those that the CloneSet, or one of its Pods, controls.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions are those that the CloneSet controls, and those that its selector matches and that have no controller.
	Revisions []*appsv1.ControllerRevision
	// NodeLabels holds the labels of the nodes that Pods are on; filled only where the template has topology spread constraints.
	NodeLabels map[string]map[string]string
	// PullJobs are the ImagePullJobs that the CloneSet controls.
	PullJobs []*v1beta1.ImagePullJob
	// Taken are names that new Pods and claims can't have, because objects that are not seen here have them.
	Taken []string
	// Former are the names of Pods that are on their way out or gone. A new Pod gets one of them only along with the claims that go with
	// it.
	Former  []string
	Now     time.Time
	Options Options
}

// read makes every read of a pass. Names and labels of everything found are those of the moment now.
func (o Options) read(ctx context.Context, r loop.Reads, set *v1beta1.CloneSet) (State, error) {
	s := Snapshot{Set: set, Now: r.Now, Options: o, Taken: r.Taken, Former: r.Former}
	selector, err := pod.Selector(set.Spec.Selector)
	if err != nil {
		// Nothing can be found with it; the plan says so.
		return Classify(s), nil
	}
	if s.Pods, err = r.Pods(ctx, set.Namespace, set.UID); err != nil {
		return State{}, err
	}
	if s.Claims, err = r.Claims(ctx, set.Namespace, selector, set.UID, s.Pods); err != nil {
		return State{}, err
	}
	if s.Revisions, err = r.RevisionsWith(ctx, set, selector, set.Status.CurrentRevision); err != nil {
		return State{}, err
	}
	if len(set.Spec.Template.Spec.TopologySpreadConstraints) > 0 {
		if s.NodeLabels, err = r.NodeLabels(ctx, s.Pods); err != nil {
			return State{}, fmt.Errorf("for topology spread: %w", err)
		}
	}
	if o.PreDownload {
		if s.PullJobs, err = r.ImagePullJobs(ctx, set.Namespace, set.UID); err != nil {
			return State{}, err
		}
	}
	v := Classify(s)
	return v, v.confirm(ctx, r)
}

// confirm makes sure that the CloneSet is still there before Pods are added while others have its labels and no controller. A CloneSet
// never takes those over, but they may be what its deletion has left behind, of which the cache of Pods can tell sooner than that of
// CloneSets.
func (v *State) confirm(ctx context.Context, r loop.Reads) error {
	if v.problem != nil || v.scaleMoves().Create <= 0 {
		return nil
	}
	_, err := r.Adoptable(ctx, r.Live, v.Set, v.selector)
	return err
}
