package advancedcronjob

import (
	"context"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
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
)

// kind is what the controller looks after.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("AdvancedCronJob") }

// EventSource is the component that the controller's events come from.
const EventSource = "advancedcronjob-controller"

// Config is what the controller works with.
type Config = loop.Config[loop.None]

// Add adds the controller to a manager, whose cache gets the indexes that it needs.
func Add(mgr manager.Manager, c Config) error {
	if err := AddIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	owner := kind().GroupKind()
	return loop.Controller{Name: "advancedcronjob", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.AdvancedCronJob{}, loop.OwnerEvents[*v1beta1.AdvancedCronJob](l.Forget)),
		source.Kind(mgr.GetCache(), &batchv1.Job{}, loop.OwnedEvents[*batchv1.Job](owner)),
		source.Kind(mgr.GetCache(), &v1beta1.BroadcastJob{}, loop.OwnedEvents[*v1beta1.BroadcastJob](owner)),
		source.Kind(mgr.GetCache(), &v1beta1.ImageListPullJob{}, loop.OwnedEvents[*v1beta1.ImageListPullJob](owner)),
	}}.AddTo(mgr)
}

// AddIndexes adds the indexes by which jobs are found to a cache.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return observe.AddControllerIndex(ctx, indexer, &batchv1.Job{}, &v1beta1.BroadcastJob{}, &v1beta1.ImageListPullJob{})
}

// Loop is the reconcile of AdvancedCronJobs.
type Loop struct {
	loop.Loop[*v1beta1.AdvancedCronJob, State]
	mu sync.Mutex
	// made is the slot, in seconds since 1970, that a job was last made for. A job that is gone again before the cache has shown it is known by this
	// alone.
	made map[types.UID]int64
}

// NewLoop returns the reconcile of AdvancedCronJobs, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	l := &Loop{made: map[types.UID]int64{}}
	statuses := apply.NewStatuses(c.Executor)
	statuses.Exact = true // the last slot must not go back
	l.Loop = loop.Loop[*v1beta1.AdvancedCronJob, State]{
		New:   func() *v1beta1.AdvancedCronJob { return &v1beta1.AdvancedCronJob{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, job *v1beta1.AdvancedCronJob) (State, error) {
			s, err := Observe(ctx, r, job)
			if err != nil {
				return State{}, err
			}
			s.Now, s.Made = c.Now(), l.lastMade(job.UID)
			return Classify(s), nil
		},
		Plan: Plan,
		Report: func(v State, p plan.Plan, done apply.Outcome) *v1beta1.AdvancedCronJob {
			l.note(v, done)
			after := v.Cron.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		Executor: c.Executor,
		Statuses: statuses,
	}
	return l
}

// Forget drops what is kept in memory of an AdvancedCronJob that is gone.
func (l *Loop) Forget(owner types.UID) {
	l.Loop.Forget(owner)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.made, owner)
}

func (l *Loop) lastMade(owner types.UID) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made[owner]
}

// note remembers the slot of a job that was made.
func (l *Loop) note(v State, done apply.Outcome) {
	for _, result := range done.Results {
		if result.Action.Verb != plan.Create || result.Err != nil {
			continue
		}
		if slot, ok := slotOf(result.Action.After); ok {
			l.mu.Lock()
			l.made[v.Cron.UID] = slot.Unix()
			l.mu.Unlock()
		}
	}
}
