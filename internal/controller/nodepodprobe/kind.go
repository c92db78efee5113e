package nodepodprobe

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// EventSource is the component that the controller's events come from.
const EventSource = "nodepodprobe-controller"

// ByNode is the index of Pods by the name of their node. The API server knows a field of this name, too.
const ByNode = "spec.nodeName"

// Options are the gates that the controller heeds.
type Options struct {
	// Virtual also heeds the results that providers of virtual nodes write on Pods themselves.
	Virtual bool
}

// Config is what the controller works with.
type Config = loop.Config[Options]

// Add adds the controller to a manager.
func Add(mgr manager.Manager, c Config) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, ByNode, func(object client.Object) []string {
		return []string{object.(*corev1.Pod).Spec.NodeName}
	})
	if err != nil {
		return fmt.Errorf("indexing Pods by node: %w", err)
	}
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	affected := nodes{Reader: mgr.GetCache(), forget: l.Forget}
	return loop.Controller{Name: "nodepodprobe", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &corev1.Node{}, loop.AffectedEvents(affected.ofNode)),
		source.Kind(mgr.GetCache(), &v1alpha1.NodePodProbe{}, loop.AffectedEvents(affected.ofProbes)),
		source.Kind(mgr.GetCache(), &v1alpha1.PodProbeMarker{}, loop.AffectedEvents(affected.ofMarker)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.AffectedEvents(affected.ofPod)),
	}}.AddTo(mgr)
}

// Loop is the reconcile of what is asked on a node: its requests are names of nodes.
type Loop struct {
	loop.Loop[*corev1.Node, Snapshot]
}

// NewLoop returns the reconcile of nodes.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	return &Loop{loop.Loop[*corev1.Node, Snapshot]{
		New:   func() *corev1.Node { return &corev1.Node{} },
		Cache: cached,
		Live:  live,
		Observe: func(ctx context.Context, r observe.Reader, node *corev1.Node) (Snapshot, error) {
			v, err := Observe(ctx, r, node)
			v.Options = c.Options
			return v, err
		},
		Plan: Plan,
		// Nothing is written on nodes.
		Report:   func(v Snapshot, _ plan.Plan, _ apply.Outcome) *corev1.Node { return v.Node },
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor),
	}}
}

// Reconcile looks after a node, or takes away what a node has left behind that is gone.
func (l *Loop) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	err := l.Cache.Get(ctx, request.NamespacedName, &corev1.Node{})
	if !apierrors.IsNotFound(err) {
		return l.Loop.Reconcile(ctx, request)
	}
	left := &v1alpha1.NodePodProbe{}
	if err := l.Cache.Get(ctx, request.NamespacedName, left); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	b := plan.For("Node " + request.Name + " is gone")
	b.Do(remove(left, "its node is gone"))
	outcome := l.Executor.Run(ctx, left, b.Plan())
	return reconcile.Result{}, outcome.Err()
}

// nodes finds the nodes that something concerns, in a cache.
type nodes struct {
	client.Reader
	forget func(types.UID)
}

// ofNode returns the node, when it comes, goes, or becomes another kind of node. Its heartbeats make no difference.
func (n nodes) ofNode(_ context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	switch {
	case after == nil:
		n.forget(before.UID)
		return []types.NamespacedName{{Name: before.Name}}, nil
	case before != nil && before.UID == after.UID && before.Labels[keys.NodeType] == after.Labels[keys.NodeType] &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil):
		return nil, nil
	}
	return []types.NamespacedName{{Name: after.Name}}, nil
}

// ofProbes returns the node that a NodePodProbe is of.
func (n nodes) ofProbes(_ context.Context, before, after *v1alpha1.NodePodProbe) ([]types.NamespacedName, error) {
	one := after
	if one == nil {
		one = before
	}
	if before != nil && after != nil && before.ResourceVersion == after.ResourceVersion {
		return nil, nil
	}
	return []types.NamespacedName{{Name: one.Name}}, nil
}

// ofPod returns the node of a Pod that a marker selects, or did before.
func (n nodes) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	one := after
	if one == nil {
		one = before
	}
	if one.Spec.NodeName == "" || before != nil && after != nil && sameForProbes(before, after) {
		return nil, nil
	}
	var markers v1alpha1.PodProbeMarkerList
	if err := n.List(ctx, &markers, client.InNamespace(one.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing PodProbeMarkers: %w", err)
	}
	for i := range markers.Items {
		selector := probe.Selector(&markers.Items[i])
		for _, p := range []*corev1.Pod{before, after} {
			if selector != nil && p != nil && selector.Matches(labels.Set(p.Labels)) {
				return []types.NamespacedName{{Name: one.Spec.NodeName}}, nil
			}
		}
	}
	return nil, nil
}

// sameForProbes reports whether nothing has changed that matters here: what a Pod is asked, and what is written on it.
func sameForProbes(a, b *corev1.Pod) bool {
	return a.Spec.NodeName == b.Spec.NodeName && a.Status.PodIP == b.Status.PodIP && probe.IsProbed(a) == probe.IsProbed(b) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Status.Conditions, b.Status.Conditions)
}

// ofMarker returns the nodes with Pods that a marker selects. Its selector does not change.
func (n nodes) ofMarker(ctx context.Context, before, after *v1alpha1.PodProbeMarker) ([]types.NamespacedName, error) {
	one := after
	if one == nil {
		one = before
	}
	selector := probe.Selector(one)
	if selector == nil || before != nil && after != nil && before.Generation == after.Generation {
		return nil, nil
	}
	var pods corev1.PodList
	if err := n.List(ctx, &pods, client.InNamespace(one.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	names := map[string]bool{}
	for i := range pods.Items {
		if name := pods.Items[i].Spec.NodeName; name != "" {
			names[name] = true
		}
	}
	var out []types.NamespacedName
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, types.NamespacedName{Name: name})
	}
	return out, nil
}
