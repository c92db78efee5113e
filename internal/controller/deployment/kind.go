package deployment

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Kind is the controller of Deployments in a release of partition style. It writes no status: the native controller does.
func Kind() loop.Kind[*appsv1.Deployment, State, struct{}] {
	return loop.Kind[*appsv1.Deployment, State, struct{}]{
		Name: "deployment",
		Owns: []client.Object{&appsv1.ReplicaSet{}},
		Indexes: func(ctx context.Context, indexer client.FieldIndexer) error {
			return observe.AddControllerIndex(ctx, indexer, &appsv1.ReplicaSet{})
		},
		Read: read,
		Plan: Plan,
	}
}
