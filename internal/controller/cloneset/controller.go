package cloneset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// kind is what the controller looks after.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("CloneSet") }

// EventSource is the component that the controller's events come from.
const EventSource = "cloneset-controller"

// Config is what the controller works with.
type Config struct {
	Options  Options
	Executor *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Workers is the number of CloneSets looked after at the same time.
	Workers int
	Now     func() time.Time
}

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	ctl, err := controller.New("cloneset", mgr, controller.Options{Reconciler: l, MaxConcurrentReconciles: c.Workers})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	for _, s := range []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.CloneSet{}, loop.OwnerEvents[*v1beta1.CloneSet](l.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.OwnedEvents[*corev1.Pod](kind().GroupKind())),
		source.Kind(mgr.GetCache(), &corev1.PersistentVolumeClaim{}, loop.OwnedEvents[*corev1.PersistentVolumeClaim](kind().GroupKind())),
	} {
		if err := ctl.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// NewLoop returns the reconcile of CloneSets, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.CloneSet, Survey] {
	return &loop.Loop[*v1beta1.CloneSet, Survey]{
		New:   func() *v1beta1.CloneSet { return &v1beta1.CloneSet{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, set *v1beta1.CloneSet) (Survey, error) {
			s, err := Observe(ctx, r, set, c.Now())
			if err == nil && c.Options.PreDownload {
				s.PullJobs, err = r.ImagePullJobs(ctx, set.Namespace, set.UID)
			}
			s.Options, s.Taken = c.Options, c.Executor.Taken(set.UID)
			return Take(s), err
		},
		Plan: Plan,
		Report: func(v Survey, p plan.Plan, done apply.Outcome) *v1beta1.CloneSet {
			after := v.Set.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor, c.Now),
	}
}
