package batchrelease

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Options are what the controller is started with.
type Options struct {
	// Foreign has workloads be of kinds that are only like a StatefulSet; nil where none is.
	Foreign releases.Foreign
}

// Kind is the controller of BatchReleases.
func Kind(o Options) loop.Kind[*v1beta1.BatchRelease, State, v1beta1.BatchReleaseStatus] {
	var finder releases.Finder
	return loop.Kind[*v1beta1.BatchRelease, State, v1beta1.BatchReleaseStatus]{
		Name: "batchrelease",
		Indexes: func(ctx context.Context, indexer client.FieldIndexer) error {
			return releases.AddIndex(ctx, indexer, &v1beta1.BatchRelease{})
		},
		Watches: func(cached observe.Reader) []loop.Watch {
			finder = releases.Finder{Reader: cached, List: func() client.ObjectList { return &v1beta1.BatchReleaseList{} }}
			return append(finder.Watches(), finder.Pods(), finder.Autoscalers(turnsAutoscalersAway))
		},
		Asked:       func(ask func(types.NamespacedName)) { finder.Asked(o.Foreign, ask) },
		Read:        o.read,
		Plan:        Plan,
		Status:      Status,
		StatusOf:    func(r *v1beta1.BatchRelease) *v1beta1.BatchReleaseStatus { return &r.Status },
		Exact:       true, // how many Pods a rollback keeps is counted once
		Minor:       isMinor,
		Begins:      begins,
		MinInterval: func(v State) time.Duration { return loop.IntervalOf(len(v.Objects.Pods)) },
	}
}

// turnsAutoscalersAway tells whether an object is a BatchRelease of a style in which no autoscaler scales the workload.
func turnsAutoscalersAway(o client.Object) bool {
	r, is := o.(*v1beta1.BatchRelease)
	return is && styleOf(r.Spec.ReleasePlan) == v1beta1.RollingStyleBlueGreen
}

func (o Options) read(ctx context.Context, r loop.Reads, release *v1beta1.BatchRelease) (State, error) {
	s := Snapshot{Release: release, Options: o, Now: r.Now}
	var err error
	s.Objects, err = releases.Source{Reader: r.Reader, Foreign: o.Foreign}.Read(ctx, release.Namespace, release.Spec.WorkloadRef, r.Now)
	var unusable *releases.UnusableError
	if errors.As(err, &unusable) {
		s.Unusable, err = unusable.Why, nil
	}
	if err == nil && turnsAutoscalersAway(release) {
		err = releases.ReadAutoscalers(ctx, r.Reader, release.Namespace, release.Spec.WorkloadRef, &s.Objects)
	}
	return Classify(s), err
}
