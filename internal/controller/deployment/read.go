package deployment

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/internal/loop"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Deployment *appsv1.Deployment
	// Sets are the ReplicaSets that it controls.
	Sets []*appsv1.ReplicaSet
	// Taken are names that its ReplicaSets can't have, because others have them.
	Taken []string
}

// read makes every read of a pass.
func read(ctx context.Context, r loop.Reads, d *appsv1.Deployment) (State, error) {
	s := Snapshot{Deployment: d, Taken: slices.Clone(r.Taken)}
	found, err := r.Controlled(ctx, &appsv1.ReplicaSetList{}, d.Namespace, d.UID)
	for _, object := range found {
		s.Sets = append(s.Sets, object.(*appsv1.ReplicaSet))
	}
	return Classify(s), err
}
