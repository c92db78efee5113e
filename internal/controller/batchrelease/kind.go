package batchrelease

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/releases"
)

// Finalizer keeps a BatchRelease until its workload is given back. Those that Rollouts make have it from the beginning.
const Finalizer = releases.BatchFinalizer

// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=batchreleases,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=batchreleases/status,verbs=patch
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=batchreleases/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets;daemonsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets;controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Kind is the controller of BatchReleases.
func Kind() loop.Kind[*v1beta1.BatchRelease, State, v1beta1.BatchReleaseStatus] {
	return loop.Kind[*v1beta1.BatchRelease, State, v1beta1.BatchReleaseStatus]{
		Name: "batchrelease",
		Indexes: func(ctx context.Context, indexer client.FieldIndexer) error {
			return releases.AddIndex(ctx, indexer, &v1beta1.BatchRelease{})
		},
		Watches: func(cached observe.Reader) []loop.Watch {
			f := releases.Finder{Reader: cached, List: func() client.ObjectList { return &v1beta1.BatchReleaseList{} }}
			return append(f.Watches(), f.Pods())
		},
		Read:     read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(r *v1beta1.BatchRelease) *v1beta1.BatchReleaseStatus { return &r.Status },
		Exact:    true, // how many Pods a rollback keeps is counted once
		Minor:    isMinor,
	}
}

func read(ctx context.Context, r loop.Reads, release *v1beta1.BatchRelease) (State, error) {
	o, err := releases.Read(ctx, r.Reader, release.Namespace, release.Spec.WorkloadRef, r.Now)
	return Classify(Snapshot{Release: release, Objects: o, Now: r.Now}), err
}
