package deployment

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Deployment *appsv1.Deployment
	// Sets are the ReplicaSets that it controls.
	Sets []*appsv1.ReplicaSet
	// Taken are names that its ReplicaSets can't have, because others have them.
	Taken []string
	// Orphaned says that a release has the Deployment in hand, and that no Rollout and no BatchRelease names it.
	Orphaned bool
}

// read makes every read of a pass.
func read(ctx context.Context, r loop.Reads, d *appsv1.Deployment) (State, error) {
	s := Snapshot{Deployment: d, Taken: slices.Clone(r.Taken)}
	found, err := r.Controlled(ctx, &appsv1.ReplicaSetList{}, d.Namespace, d.UID)
	if err != nil {
		return State{}, err
	}
	for _, object := range found {
		s.Sets = append(s.Sets, object.(*appsv1.ReplicaSet))
	}
	s.Orphaned, err = isOrphaned(ctx, r, d)
	return Classify(s), err
}

func ofDeployment() schema.GroupKind {
	return schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}
}

// isOrphaned tells whether a Deployment waits for a Rollout that is gone: its finalizer was removed by hand, or the webhook marked the
// Deployment in the moment in which the Rollout went. The claim of a BatchRelease says the same where somebody has removed the mark. A
// BatchRelease that is there still gives the Deployment back itself. What the cache does not know is looked for at the API server before
// anything is done about it.
func isOrphaned(ctx context.Context, r loop.Reads, d *appsv1.Deployment) (bool, error) {
	if !steer.IsReleased(d) || d.DeletionTimestamp != nil {
		return false, nil
	}
	for _, reader := range []observe.Reader{r.Reader, {Reader: r.Live}} {
		for _, list := range []func() client.ObjectList{
			func() client.ObjectList { return &v1beta1.RolloutList{} }, func() client.ObjectList { return &v1beta1.BatchReleaseList{} },
		} {
			found, err := releases.Finder{Reader: reader, List: list}.Of(ctx, d.Namespace, ofDeployment(), d.Name)
			if err != nil || len(found) > 0 {
				return false, err
			}
		}
	}
	return true, nil
}

// leaving returns the events of Rollouts or BatchReleases that go, or turn to another workload: they may leave a Deployment behind.
func leaving(object client.Object) loop.Watch {
	return loop.Affected(object, func(_ context.Context, before, after client.Object) ([]types.NamespacedName, error) {
		if before == nil {
			return nil, nil
		}
		was, _ := releases.RefOf(before)
		if after != nil {
			if is, _ := releases.RefOf(after); is == was {
				return nil, nil
			}
		}
		if releases.GroupKind(was) != ofDeployment() {
			return nil, nil
		}
		return []types.NamespacedName{{Namespace: before.GetNamespace(), Name: was.Name}}, nil
	})
}
