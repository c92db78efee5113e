package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/releases"
)

// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=deployments/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=rollouts;batchreleases,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Kind is the controller of Deployments in a release of partition style. It writes no status: the native controller does. Its cache needs
// the indexes observe.ByController of ReplicaSets, and releases.ByWorkload of Rollouts and BatchReleases.
func Kind() loop.Kind[*appsv1.Deployment, State, struct{}] {
	return loop.Kind[*appsv1.Deployment, State, struct{}]{
		Name: "deployment",
		Owns: []client.Object{&appsv1.ReplicaSet{}},
		Watches: func(observe.Reader) []loop.Watch {
			return []loop.Watch{
				releases.Leaving(&v1beta1.Rollout{}, ofDeployment()), releases.Leaving(&v1beta1.BatchRelease{}, ofDeployment()),
			}
		},
		Read: read,
		Plan: Plan,
	}
}
