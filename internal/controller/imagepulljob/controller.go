package imagepulljob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// EventSource is the component that the controller's events come from.
const EventSource = "imagepulljob-controller"

// Config is what the controller works with.
type Config struct {
	Options  Options
	Executor *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Sources reads the Secrets that jobs name.
	Sources *observe.Sources
	// Workers is the number of jobs looked after at the same time.
	Workers int
	Now     func() time.Time
}

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	jobs := Jobs{Reader: mgr.GetCache(), SystemNamespace: c.Options.SystemNamespace}
	return loop.Controller{Name: "imagepulljob", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.ImagePullJob{}, loop.OwnerEvents[*v1beta1.ImagePullJob](l.Forget)),
		source.Kind(mgr.GetCache(), &v1beta1.NodeImage{}, loop.AffectedEvents(jobs.OfNodeImage)),
		source.Kind(mgr.GetCache(), &corev1.Node{}, loop.AffectedEvents(jobs.OfNode)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.AffectedEvents(jobs.OfPod)),
		source.Kind(mgr.GetCache(), &corev1.Secret{}, loop.AffectedEvents(OfCopy)),
	}}.AddTo(mgr)
}

// NewLoop returns the reconcile of ImagePullJobs, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.ImagePullJob, Survey] {
	statuses := apply.NewStatuses(c.Executor)
	statuses.Exact = true // a job that is over must not run again
	return &loop.Loop[*v1beta1.ImagePullJob, Survey]{
		New:   func() *v1beta1.ImagePullJob { return &v1beta1.ImagePullJob{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, job *v1beta1.ImagePullJob) (Survey, error) {
			s, err := c.Observe(ctx, r, job)
			if err != nil {
				return Survey{}, err
			}
			return Take(s), nil
		},
		Plan: Plan,
		Report: func(v Survey, _ plan.Plan, _ apply.Outcome) *v1beta1.ImagePullJob {
			after := v.Job.DeepCopy()
			after.Status = Status(v)
			return after
		},
		Executor: c.Executor,
		Statuses: statuses,
	}
}
