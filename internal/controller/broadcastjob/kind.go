package broadcastjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
)

// kind is what the controller looks after.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("BroadcastJob") }

// EventSource is the component that the controller's events come from.
const EventSource = "broadcastjob-controller"

// Config is what the controller works with.
type Config = loop.Config[Options]

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	return loop.Controller{Name: "broadcastjob", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.BroadcastJob{}, loop.OwnerEvents[*v1beta1.BroadcastJob](l.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.OwnedEvents[*corev1.Pod](kind().GroupKind())),
		source.Kind(mgr.GetCache(), &corev1.Node{}, loop.AffectedEvents(Jobs{Reader: mgr.GetCache()}.OfNode)),
	}}.AddTo(mgr)
}

// Loop is the reconcile of BroadcastJobs.
type Loop = loop.Loop[*v1beta1.BroadcastJob, State]

// NewLoop returns the reconcile of BroadcastJobs, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	statuses := apply.NewStatuses(c.Executor)
	statuses.Exact = true // a finished job must not run again
	return &Loop{
		New:   func() *v1beta1.BroadcastJob { return &v1beta1.BroadcastJob{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, job *v1beta1.BroadcastJob) (State, error) {
			s, err := Observe(ctx, r, job)
			if err != nil {
				return State{}, err
			}
			s.Now, s.Options, s.Taken = c.Now(), c.Options, c.Executor.TakenNames(job.UID)
			return Classify(s), nil
		},
		Plan: Plan,
		Report: func(v State, p plan.Plan, done apply.Outcome) *v1beta1.BroadcastJob {
			after := v.Job.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		Executor: c.Executor,
		Statuses: statuses,
	}
}

// Jobs finds the BroadcastJobs that a node concerns, in a cache.
type Jobs struct{ client.Reader }

// OfNode returns the unfinished jobs for which a new, deleted or changed node makes a difference. Heartbeats, which most changes are, cost a comparison.
func (j Jobs) OfNode(ctx context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if before != nil && after != nil && !nodefit.Changed(before, after) {
		return nil, nil
	}
	var list v1beta1.BroadcastJobList
	jobs, err := observe.List(ctx, j, &list, &list.Items)
	return observe.Keys(jobs, func(job *v1beta1.BroadcastJob) bool { return !isFinished(job) && concerns(job, before, after) }), err
}

func concerns(job *v1beta1.BroadcastJob, before, after *corev1.Node) bool {
	fit := nodefit.OfJob(&job.Spec.Template.Spec)
	switch {
	case after == nil:
		return true // the job may have a Pod there
	case before == nil:
		return fit.On(after).Run
	}
	return fit.On(before) != fit.On(after)
}
