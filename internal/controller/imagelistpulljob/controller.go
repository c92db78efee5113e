package imagelistpulljob

import (
	"context"

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
type Config = loop.Config[loop.None]

// Add adds the controller to a manager, whose cache has the index of package observe for ImagePullJobs.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	kind := v1beta1.GroupVersion.WithKind("ImageListPullJob").GroupKind()
	return loop.Controller{Name: "imagelistpulljob", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.ImageListPullJob{}, loop.OwnerEvents[*v1beta1.ImageListPullJob](l.Forget)),
		source.Kind(mgr.GetCache(), &v1beta1.ImagePullJob{}, loop.OwnedEvents[*v1beta1.ImagePullJob](kind)),
	}}.AddTo(mgr)
}

// NewLoop returns the reconcile of ImageListPullJobs, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.ImageListPullJob, Survey] {
	statuses := apply.NewStatuses(c.Executor, c.Now)
	statuses.Exact = true // a list that is over must not make jobs again
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
			if v.isUnlabelled() {
				return v.List // it has just been written: the next pass judges what it is now
			}
			after := v.List.DeepCopy()
			after.Status = Status(v)
			return after
		},
		Executor: c.Executor,
		Statuses: statuses,
	}
}
