package cloneset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
type Config = loop.Config[Options]

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	return loop.Controller{Name: "cloneset", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.CloneSet{}, loop.OwnerEvents[*v1beta1.CloneSet](l.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.OwnedEvents[*corev1.Pod](kind().GroupKind())),
		source.Kind(mgr.GetCache(), &corev1.PersistentVolumeClaim{}, loop.OwnedEvents[*corev1.PersistentVolumeClaim](kind().GroupKind())),
	}}.AddTo(mgr)
}

// NewLoop returns the reconcile of CloneSets, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.CloneSet, State] {
	statuses := apply.NewStatuses(c.Executor, c.Now)
	statuses.Final = saysComplete
	return &loop.Loop[*v1beta1.CloneSet, State]{
		New:   func() *v1beta1.CloneSet { return &v1beta1.CloneSet{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, set *v1beta1.CloneSet) (State, error) {
			s, err := Observe(ctx, r, set, c.Now())
			if err == nil && c.Options.PreDownload {
				s.PullJobs, err = r.ImagePullJobs(ctx, set.Namespace, set.UID)
			}
			if err != nil {
				return State{}, err
			}
			s.Options, s.Taken = c.Options, c.Executor.Taken(set.UID)
			v := Classify(s)
			return v, confirm(ctx, r, c.Live, v)
		},
		Plan:      Plan,
		Meanwhile: Meanwhile,
		Report: func(v State, p plan.Plan, done apply.Outcome) *v1beta1.CloneSet {
			after := v.Set.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		Executor: c.Executor,
		Statuses: statuses,
	}
}
