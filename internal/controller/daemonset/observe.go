package daemonset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Observe makes every read of a pass. Live reads around the cache.
//
// A DaemonSet that nobody has looked at yet may be there to take over the Pods of another one. The cache of Pods may lag behind that of DaemonSets
// and still show those Pods as the other one's; a second Pod would be created beside each of them. So its first orphans are read live.
func Observe(ctx context.Context, r observe.Reader, live client.Reader, set *v1beta1.DaemonSet) (Snapshot, error) {
	s := Snapshot{Set: set}
	selector, err := pod.Selector(set.Spec.Selector)
	if err != nil || set.DeletionTimestamp != nil {
		// Nothing can be found with it, or nothing is to be done; the plan says so.
		return s, nil
	}
	if s.Pods, err = r.Pods(ctx, set.Namespace, set.UID); err != nil {
		return Snapshot{}, err
	}
	orphans := r
	if set.Status.ObservedGeneration == 0 {
		orphans = observe.Reader{Reader: live}
	}
	if s.Orphans, err = orphans.Adoptable(ctx, live, set, selector); err != nil {
		return Snapshot{}, err
	}
	if s.Revisions, err = r.Revisions(ctx, set.Namespace, selector, set.UID); err != nil {
		return Snapshot{}, err
	}
	s.Nodes, err = r.Nodes(ctx)
	return s, err
}

// hasPredecessor reports whether a DaemonSet of Kubernetes of the same name is being deleted. It has its Pods until the garbage collector has taken
// its name off each of them, or deleted them; until then, every node seems to lack one of ours. It matters for a DaemonSet alone that nobody has
// looked at yet.
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
