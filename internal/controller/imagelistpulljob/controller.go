package imagelistpulljob

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// EventSource is the component that the controller's events come from.
const EventSource = "imagelistpulljob-controller"

// Config is what the controller works with.
type Config struct {
	Executor *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Workers is the number of lists looked after at the same time.
	Workers int
	Now     func() time.Time
}

// Add adds the controller to a manager, whose cache has the index of package observe for ImagePullJobs.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	ctl, err := controller.New("imagelistpulljob", mgr, controller.Options{Reconciler: l, MaxConcurrentReconciles: c.Workers})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	kind := v1beta1.GroupVersion.WithKind("ImageListPullJob").GroupKind()
	for _, s := range []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.ImageListPullJob{}, loop.OwnerEvents[*v1beta1.ImageListPullJob](l.Forget)),
		source.Kind(mgr.GetCache(), &v1beta1.ImagePullJob{}, loop.OwnedEvents[*v1beta1.ImagePullJob](kind)),
	} {
		if err := ctl.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// NewLoop returns the reconcile of ImageListPullJobs, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.ImageListPullJob, Survey] {
	return &loop.Loop[*v1beta1.ImageListPullJob, Survey]{
		New:   func() *v1beta1.ImageListPullJob { return &v1beta1.ImageListPullJob{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, list *v1beta1.ImageListPullJob) (Survey, error) {
			jobs, err := r.ImagePullJobs(ctx, list.Namespace, list.UID)
			if err != nil {
				return Survey{}, err
			}
			return Take(Snapshot{List: list, Jobs: jobs, Now: c.Now()}), nil
		},
		Plan: Plan,
		Report: func(v Survey, _ plan.Plan, _ apply.Outcome) *v1beta1.ImageListPullJob {
			after := v.List.DeepCopy()
			after.Status = Status(v)
			return after
		},
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor, c.Now),
	}
}
