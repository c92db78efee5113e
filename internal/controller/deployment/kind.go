package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/loop"
)

// Kind is the controller of Deployments in a release of partition style. It writes no status: the native controller does. Its cache needs
// the index observe.ByController of ReplicaSets.
func Kind() loop.Kind[*appsv1.Deployment, State, struct{}] {
	return loop.Kind[*appsv1.Deployment, State, struct{}]{
		Name: "deployment",
		Owns: []client.Object{&appsv1.ReplicaSet{}},
		Read: read,
		Plan: Plan,
	}
}
