package daemonset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// kind is what the controller looks after.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("DaemonSet") }

// EventSource is the component that the controller's events come from.
const EventSource = "daemonset-controller"

// Config is what the controller works with.
type Config = loop.Config[Options]

// Add adds the controller to a manager, whose cache has the indexes of package observe.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	sets := Sets{Reader: mgr.GetCache()}
	return loop.Controller{Name: "daemonset", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.DaemonSet{}, loop.OwnerEvents[*v1beta1.DaemonSet](l.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.OwnedEvents[*corev1.Pod](kind().GroupKind())),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.AffectedEvents(sets.OfOrphan)),
		source.Kind(mgr.GetCache(), &corev1.Node{}, loop.AffectedEvents(sets.OfNode)),
	}}.AddTo(mgr)
}

// Loop is the reconcile of DaemonSets.
type Loop struct {
	loop.Loop[*v1beta1.DaemonSet, Survey]
	memory *memory
}

// NewLoop returns the reconcile of DaemonSets, for a manager or for a simulated cluster.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	l := &Loop{memory: newMemory()}
	statuses := apply.NewStatuses(c.Executor)
	statuses.Final = saysComplete
	l.Loop = loop.Loop[*v1beta1.DaemonSet, Survey]{
		New:   func() *v1beta1.DaemonSet { return &v1beta1.DaemonSet{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, set *v1beta1.DaemonSet) (Survey, error) {
			waits, err := hasPredecessor(ctx, c.Live, set)
			if err != nil {
				return Survey{}, err
			}
			// What is seen live is not to be unseen by a cache that is older.
			s, err := Observe(ctx, r, c.Executor.Tracked(set.UID, live.Reader), set)
			if err != nil {
				return Survey{}, err
			}
			if c.Options.PreDownload {
				if s.PullJobs, err = r.ImagePullJobs(ctx, set.Namespace, set.UID); err != nil {
					return Survey{}, err
				}
			}
			s.Now, s.Options, s.Taken, s.Predecessor = c.Now(), c.Options, c.Executor.TakenNames(set.UID), waits
			s.Failures = l.memory.failures(set.UID, set.Generation)
			return Take(s), nil
		},
		Plan: Plan,
		Report: func(v Survey, p plan.Plan, done apply.Outcome) *v1beta1.DaemonSet {
			after := v.Set.DeepCopy()
			after.Status = Status(v, p, done)
			return after
		},
		Remember: l.noteFailures,
		Executor: c.Executor,
		Statuses: statuses,
	}
	return l
}

// Forget drops what is kept in memory of a DaemonSet that is gone.
func (l *Loop) Forget(owner types.UID) {
	l.Loop.Forget(owner)
	l.memory.forget(owner)
}

// noteFailures remembers which nodes' Pods were deleted because they had ended.
func (l *Loop) noteFailures(v Survey, done apply.Outcome) {
	for _, result := range done.Results {
		p, isPod := result.Action.Before.(*corev1.Pod)
		if isPod && result.Action.Verb == plan.Delete && result.Err == nil && pod.IsFinished(p) {
			l.memory.deleted(v.Set.UID, v.Set.Generation, nodefit.NodeOf(p), v.Now)
		}
	}
}
