package ephemeraljob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// kind is what the controller looks after.
func kind() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("EphemeralJob") }

// EventSource is the component that the controller's events come from.
const EventSource = "ephemeraljob-controller"

// Options are the choices made for the whole controller at start-up: there are none.
type Options struct{}

// Config is what the controller works with.
type Config = loop.Config[Options]

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	if err := AddIndex(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	return loop.Controller{Name: "ephemeraljob", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1alpha1.EphemeralJob{}, loop.OwnerEvents[*v1alpha1.EphemeralJob](l.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.AffectedEvents(Jobs{Reader: mgr.GetCache()}.OfPod)),
	}}.AddTo(mgr)
}

// Loop is the reconcile of EphemeralJobs.
type Loop = loop.Loop[*v1alpha1.EphemeralJob, Survey]

// NewLoop returns the reconcile of EphemeralJobs, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	statuses := apply.NewStatuses(c.Executor)
	statuses.Exact = true // a job that is over must not run again
	refused := &apply.Refused{Verb: plan.AddContainers, Concern: plan.Scale}
	return &Loop{
		New:   func() *v1alpha1.EphemeralJob { return &v1alpha1.EphemeralJob{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, job *v1alpha1.EphemeralJob) (Survey, error) {
			s, err := Observe(ctx, r, job)
			if err != nil {
				return Survey{}, err
			}
			s.Now = c.Now()
			s.Refused = refused.Present(s.Now)
			return Take(s), nil
		},
		Plan: Plan,
		Report: func(v Survey, p plan.Plan, done apply.Outcome) *v1alpha1.EphemeralJob {
			after := v.Job.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		Remember: func(v Survey, done apply.Outcome) { refused.Note(done, v.Now) },
		Executor: c.Executor,
		Statuses: statuses,
	}
}
