package daemonset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Set *v1beta1.DaemonSet
	// Pods are those that the DaemonSet controls.
	Pods []*corev1.Pod
	// Orphans are those that its selector matches and that have no controller. No more of them may be known than their metadata.
	Orphans []*corev1.Pod
	// Predecessor means that a DaemonSet of Kubernetes of the same name is being deleted, whose Pods may become orphans any moment.
	Predecessor bool
	// Nodes are all nodes of the cluster.
	Nodes []*corev1.Node
	// Revisions are those that the DaemonSet controls, and those that its selector matches and that have no controller.
	Revisions []*appsv1.ControllerRevision
	// Failures are the nodes whose Pod has ended lately.
	Failures map[string]Failure
	// PullJobs are the ImagePullJobs that the DaemonSet controls.
	PullJobs []*v1beta1.ImagePullJob
	// Taken are names that new Pods don't get: objects that are not seen here have them, or Pods before had them.
	Taken   []string
	Now     time.Time
	Options Options
}

// read makes every read of a pass, but for the failures, which are kept in memory.
func (o Options) read(ctx context.Context, r loop.Reads, set *v1beta1.DaemonSet) (Snapshot, error) {
	s := Snapshot{Set: set, Now: r.Now, Options: o, Taken: slices.Concat(r.Taken, r.Former)}
	var err error
	if s.Predecessor, err = hasPredecessor(ctx, r.Live, set); err != nil {
		return Snapshot{}, err
	}
	selector, err := pod.Selector(set.Spec.Selector)
	if err != nil || set.DeletionTimestamp != nil {
		// Nothing can be found with it, or nothing is to be done; the plan says so.
		return s, nil
	}
	if s.Pods, err = r.Pods(ctx, set.Namespace, set.UID); err != nil {
		return Snapshot{}, err
	}
	if s.Orphans, err = r.Adoptable(ctx, r.Tracked, set, selector); err != nil {
		return Snapshot{}, err
	}
	if s.Revisions, err = r.RevisionsWith(ctx, set, selector, "", s.Orphans...); err != nil {
		return Snapshot{}, err
	}
	if o.PreDownload {
		if s.PullJobs, err = r.ImagePullJobs(ctx, set.Namespace, set.UID); err != nil {
			return Snapshot{}, err
		}
	}
	s.Nodes, err = r.Nodes(ctx)
	return s, err
}

// hasPredecessor reports whether a DaemonSet of Kubernetes of the same name is being deleted. It has its Pods until the garbage collector
// has taken its name off each of them, or deleted them; until then, every node seems to lack one of ours. It matters only for a DaemonSet
// without an observed generation.
func hasPredecessor(ctx context.Context, live client.Reader, set *v1beta1.DaemonSet) (bool, error) {
	if set.Status.ObservedGeneration != 0 {
		return false, nil
	}
	var native appsv1.DaemonSet
	err := live.Get(ctx, client.ObjectKeyFromObject(set), &native)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for a DaemonSet of Kubernetes of the same name: %w", err)
	}
	return native.DeletionTimestamp != nil, nil
}
