package rollout

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Finalizer keeps a Rollout until what its release has changed is restored.
//
// Wire: it is in users' objects.
const Finalizer = "rollouts.kruise.io/rollout"

// Traffic reads and changes what leads traffic to a workload.
type Traffic interface {
	// Read returns what leads traffic to the workload of a Rollout.
	Read(ctx context.Context, r loop.Reads, rollout *v1beta1.Rollout, workload steer.Facts) (Routes, error)
	// Watches returns the events of what leads traffic, and Asked has passes asked for because of kinds that no cache had at first.
	Watches(cached observe.Reader) []loop.Watch
	Asked(cached observe.Reader, ask func(types.NamespacedName))
}

// Routes is what leads traffic to one workload.
type Routes interface {
	// Seen returns what is there.
	Seen() release.Traffic
	// Plan returns the writes that bring a state of traffic about, one after the other. It changes nothing.
	Plan(release.Action) plan.Chain
}

// Options are what the controller is started with.
type Options struct {
	// Traffic leads traffic; nil where nothing can.
	Traffic Traffic
	// Measurer makes measurements that need the network; nil where nothing can.
	Measurer Measurer
	// Metrics count what releases take, and how they end; nil for none.
	Metrics *Metrics
	// KeepsFrozen has a release that is cut short, because its Rollout is disabled or deleted, leave its workload frozen.
	KeepsFrozen bool
	// Histories has each release recorded in a RolloutHistory when it is over.
	Histories bool
	// Foreign has workloads be of kinds that are only like a StatefulSet; nil where none is.
	Foreign releases.Foreign
}

// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=rollouts,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=rollouts/status,verbs=patch
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=rollouts/finalizers,verbs=update

// Kind is the controller of Rollouts.
func Kind(o Options) loop.Kind[*v1beta1.Rollout, State, v1beta1.RolloutStatus] {
	var reader observe.Reader
	kind := loop.Kind[*v1beta1.Rollout, State, v1beta1.RolloutStatus]{
		Name: "rollout",
		Owns: []client.Object{&v1beta1.BatchRelease{}},
		Indexes: func(ctx context.Context, indexer client.FieldIndexer) error {
			return releases.AddIndex(ctx, indexer, &v1beta1.Rollout{})
		},
		Asked: func(ask func(types.NamespacedName)) {
			finderOf(reader).Asked(o.Foreign, ask)
			if o.Traffic != nil {
				o.Traffic.Asked(reader, ask)
			}
			if o.Measurer != nil {
				o.Measurer.Asked(ask)
			}
		},
		Watches: func(cached observe.Reader) []loop.Watch {
			reader = cached
			f := finderOf(cached)
			out := append(f.Watches(), f.PodsThat(tellsMore), jobs())
			if o.Histories {
				out = append(out, loop.Owned(&v1alpha1.RolloutHistory{}, v1beta1.GroupVersion.WithKind("Rollout").GroupKind()))
			}
			if o.Traffic != nil {
				out = append(out, o.Traffic.Watches(cached)...)
			}
			return out
		},
		Read:        o.read,
		Plan:        Plan,
		Status:      Status,
		StatusOf:    func(r *v1beta1.Rollout) *v1beta1.RolloutStatus { return &r.Status },
		StatusFirst: true,
		Exact:       true, // what a user writes into the status, such as an approval, must not be lost
		Minor:       isMinor,
		MinInterval: func(v State) time.Duration { return loop.IntervalOf(len(v.Objects.Pods)) },
		Remember:    o.remember,
		Release:     func(_ State, r *v1beta1.Rollout) plan.Release { return releaseOf(r) },
	}
	if o.Measurer != nil {
		kind.Forget = o.Measurer.Forget
	}
	return kind
}

// finderOf finds Rollouts.
func finderOf(cached observe.Reader) releases.Finder {
	return releases.Finder{Reader: cached, List: func() client.ObjectList { return &v1beta1.RolloutList{} }}
}

// remember has what was decided measured and counted: its status is stored by now.
func (o Options) remember(v State, _ apply.Outcome) {
	r := v.Rollout
	if o.Measurer != nil {
		o.Measurer.Want(types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, r.UID, v.requests())
	}
	if v.problem == "" && v.lacks == "" && hasFinalizer(r) {
		o.Metrics.count(&r.Status, &v.decision.Status, v.Now)
	}
}

// releaseOf returns the release that a Rollout is in, or was last.
func releaseOf(r *v1beta1.Rollout) plan.Release {
	at, begun := progress.ReleaseOf(r)
	if !begun {
		return plan.Release{}
	}
	return plan.Release{Name: at.ObservedRolloutID, Revision: cmp.Or(at.PodTemplateHash, at.ObservedRolloutID)}
}
