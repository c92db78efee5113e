package nodeimage

import (
	"context"
	"errors"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// EventSource is the component that the controller's events come from.
const EventSource = "nodeimage-controller"

// Config is what the controller works with.
type Config struct {
	// Births carries out what the loop over nodes plans, Upkeep what the one over NodeImages does.
	Births, Upkeep *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Workers is the number of NodeImages looked after at the same time.
	Workers int
	// CreationDelay is how long a node must have been Ready before it gets a NodeImage.
	CreationDelay time.Duration
	// Jobs says that ImagePullJobs are looked after: what becomes of one matters to the tags that it asked for.
	Jobs bool
	// Namespace is the only one whose jobs are looked after; empty for all.
	Namespace string
	// ConfigNamespace is the namespace whose Secrets the daemons of nodes may read.
	ConfigNamespace string
	Now             func() time.Time
}

// Add adds the controllers to a manager.
func Add(mgr manager.Manager, c Config) error {
	cached, live := observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live}
	births := NewBirths(c, cached, live)
	upkeep := NewUpkeep(c, cached, live)
	nodes := []source.Source{
		source.Kind(mgr.GetCache(), &corev1.Node{}, loop.AffectedEvents(ofNode)),
		source.Kind(mgr.GetCache(), &v1beta1.NodeImage{}, loop.AffectedEvents(ofLost)),
	}
	images := Images{Reader: mgr.GetCache()}
	tidy := []source.Source{
		source.Kind(mgr.GetCache(), &v1beta1.NodeImage{}, loop.OwnerEvents[*v1beta1.NodeImage](upkeep.Forget)),
		source.Kind(mgr.GetCache(), &corev1.Node{}, loop.AffectedEvents(ofLabels)),
	}
	if c.Jobs {
		tidy = append(tidy, source.Kind(mgr.GetCache(), &v1beta1.ImagePullJob{}, loop.AffectedEvents(images.OfJob)))
	}
	return errors.Join(
		loop.Controller{Name: "nodeimage-birth", Reconciler: births, Workers: c.Workers, Sources: nodes}.AddTo(mgr),
		loop.Controller{Name: "nodeimage", Reconciler: upkeep, Workers: c.Workers, Sources: tidy}.AddTo(mgr),
	)
}

// NewBirths returns the reconcile of nodes.
func NewBirths(c Config, cached, live observe.Reader) *loop.Loop[*corev1.Node, Newcomer] {
	return &loop.Loop[*corev1.Node, Newcomer]{
		New:      func() *corev1.Node { return &corev1.Node{} },
		Cache:    cached,
		Live:     live,
		Observe:  c.observeNewcomer,
		Plan:     PlanBirth,
		Report:   func(n Newcomer, _ plan.Plan, _ apply.Outcome) *corev1.Node { return n.Node },
		Executor: c.Births,
		Statuses: apply.NewStatuses(c.Births),
	}
}

// NewUpkeep returns the reconcile of NodeImages.
func NewUpkeep(c Config, cached, live observe.Reader) *loop.Loop[*v1beta1.NodeImage, Snapshot] {
	return &loop.Loop[*v1beta1.NodeImage, Snapshot]{
		New:      func() *v1beta1.NodeImage { return &v1beta1.NodeImage{} },
		Cache:    cached,
		Live:     live,
		Observe:  (&observer{Config: c}).observe,
		Plan:     Plan,
		Report:   func(s Snapshot, _ plan.Plan, _ apply.Outcome) *v1beta1.NodeImage { return s.Image },
		Executor: c.Upkeep,
		Statuses: apply.NewStatuses(c.Upkeep),
	}
}

// ofLabels returns the NodeImage of a node whose labels have changed, or that is gone.
func ofLabels(_ context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	switch {
	case after == nil:
		return []types.NamespacedName{{Name: before.Name}}, nil
	case before == nil, before.UID != after.UID, !maps.Equal(before.Labels, after.Labels), (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil):
		return []types.NamespacedName{{Name: after.Name}}, nil
	default:
		return nil, nil
	}
}

// Images finds the NodeImages that something concerns that does not say so itself.
type Images struct {
	// Reader is a cache.
	client.Reader
}

// OfJob returns the NodeImages that a job has asked, when the job has completed or is gone: they need not keep for it what they have.
func (m Images) OfJob(ctx context.Context, before, after *v1beta1.ImagePullJob) ([]types.NamespacedName, error) {
	gone := after == nil || after.DeletionTimestamp != nil
	completed := !gone && before != nil && before.Status.CompletionTime == nil && after.Status.CompletionTime != nil
	if !gone && !completed {
		return nil, nil
	}
	of := before
	if of == nil {
		of = after
	}
	var all v1beta1.NodeImageList
	if err := m.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var out []types.NamespacedName
	for i := range all.Items {
		if asked(&all.Items[i], of.UID) {
			out = append(out, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return out, nil
}

func asked(n *v1beta1.NodeImage, job types.UID) bool {
	for _, image := range n.Spec.Images {
		for i := range image.Tags {
			for _, owner := range image.Tags[i].OwnerReferences {
				if owner.UID == job {
					return true
				}
			}
		}
	}
	return false
}
