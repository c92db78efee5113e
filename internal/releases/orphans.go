package releases

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// IsOrphaned tells whether a workload waits for a Rollout that is gone: its finalizer was removed by hand, or the webhook marked the
// workload in the moment in which the Rollout went. The claim of a BatchRelease says the same where somebody has removed the mark. A
// BatchRelease that is there still gives the workload back itself. What the cache does not know is looked for at the API server before
// anything is done about it. A second Deployment goes with its BatchRelease by itself.
func IsOrphaned(ctx context.Context, r loop.Reads, workload client.Object, of schema.GroupKind) (bool, error) {
	if !steer.IsReleased(workload) || workload.GetDeletionTimestamp() != nil || ownerOfCanary(workload) != "" {
		return false, nil
	}
	for _, reader := range []observe.Reader{r.Reader, {Reader: r.Live}} {
		for _, list := range []func() client.ObjectList{
			func() client.ObjectList { return &v1beta1.RolloutList{} }, func() client.ObjectList { return &v1beta1.BatchReleaseList{} },
		} {
			found, err := Finder{Reader: reader, List: list}.Of(ctx, workload.GetNamespace(), of, workload.GetName())
			if err != nil || len(found) > 0 {
				return false, err
			}
		}
	}
	return true, nil
}

// Leaving returns the events of Rollouts or BatchReleases that go, or turn to another workload: they may leave one of a kind behind.
func Leaving(object client.Object, of schema.GroupKind) loop.Watch {
	return loop.Affected(object, func(_ context.Context, before, after client.Object) ([]types.NamespacedName, error) {
		if before == nil {
			return nil, nil
		}
		was, _ := RefOf(before)
		if after != nil {
			if is, _ := RefOf(after); is == was {
				return nil, nil
			}
		}
		if GroupKind(was) != of {
			return nil, nil
		}
		return []types.NamespacedName{{Namespace: before.GetNamespace(), Name: was.Name}}, nil
	})
}
