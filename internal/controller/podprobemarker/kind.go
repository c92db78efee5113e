package podprobemarker

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// EventSource is the component that the controller's events come from.
const EventSource = "podprobemarker-controller"

// Config is what the controller works with.
type Config = loop.Config[loop.None]

// Add adds the controller to a manager.
func Add(mgr manager.Manager, c Config) error {
	l := NewLoop(c, observe.Reader{Reader: mgr.GetCache(), Indexed: true}, observe.Reader{Reader: c.Live})
	affected := markers{mgr.GetCache()}
	return loop.Controller{Name: "podprobemarker", Reconciler: l, Workers: c.Workers, Sources: []source.Source{
		source.Kind(mgr.GetCache(), &v1alpha1.PodProbeMarker{}, loop.OwnerEvents[*v1alpha1.PodProbeMarker](l.Forget)),
		source.Kind(mgr.GetCache(), &v1alpha1.PodProbeMarker{}, loop.AffectedEvents(affected.beside)),
		source.Kind(mgr.GetCache(), &corev1.Pod{}, loop.AffectedEvents(affected.ofPod)),
		source.Kind(mgr.GetCache(), &v1alpha1.NodePodProbe{}, loop.AffectedEvents(affected.left)),
	}}.AddTo(mgr)
}

// Loop is the reconcile of PodProbeMarkers.
type Loop = loop.Loop[*v1alpha1.PodProbeMarker, Snapshot]

// NewLoop returns the reconcile of PodProbeMarkers.
func NewLoop(c Config, cached, live observe.Reader) *Loop {
	return &Loop{
		New:     func() *v1alpha1.PodProbeMarker { return &v1alpha1.PodProbeMarker{} },
		Cache:   cached,
		Live:    live,
		Observe: Observe,
		Plan:    Plan,
		Report: func(v Snapshot, _ plan.Plan, _ apply.Outcome) *v1alpha1.PodProbeMarker {
			after := v.Marker.DeepCopy()
			after.Status = Status(v)
			return after
		},
		Executor: c.Executor,
		Statuses: apply.NewStatuses(c.Executor),
	}
}

// markers finds the markers that something concerns, in a cache.
type markers struct{ client.Reader }

// ofPod returns the markers whose count a change of a Pod may change.
func (m markers) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	var counted []labels.Set
	var namespace string
	for _, p := range []*corev1.Pod{before, after} {
		if p != nil {
			namespace = p.Namespace
		}
		if p != nil && probe.IsProbed(p) {
			counted = append(counted, p.Labels)
		}
	}
	if len(counted) == 0 || len(counted) == 2 && labels.Equals(counted[0], counted[1]) {
		return nil, nil
	}
	return m.those(ctx, namespace, func(marker *v1alpha1.PodProbeMarker) bool {
		selector := probe.Selector(marker)
		return selector != nil && slices.ContainsFunc(counted, func(s labels.Set) bool { return selector.Matches(s) })
	})
}

// beside returns the other markers of the namespace, whose conditions a marker that comes, changes or goes may take or leave.
func (m markers) beside(ctx context.Context, before, after *v1alpha1.PodProbeMarker) ([]types.NamespacedName, error) {
	if before != nil && after != nil && before.Generation == after.Generation {
		return nil, nil
	}
	one := after
	if one == nil {
		one = before
	}
	return m.those(ctx, one.Namespace, func(marker *v1alpha1.PodProbeMarker) bool { return marker.Name != one.Name })
}

// left returns the markers that a node has just stopped asking for.
func (m markers) left(_ context.Context, before, after *v1alpha1.NodePodProbe) ([]types.NamespacedName, error) {
	if before == nil {
		return nil, nil
	}
	gone := on(before)
	for key := range on(after) {
		delete(gone, key)
	}
	var out []types.NamespacedName
	for key := range gone {
		out = append(out, key)
	}
	return out, nil
}

func (m markers) those(ctx context.Context, namespace string, affected func(*v1alpha1.PodProbeMarker) bool) ([]types.NamespacedName, error) {
	var list v1alpha1.PodProbeMarkerList
	if err := m.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing PodProbeMarkers: %w", err)
	}
	var out []types.NamespacedName
	for i := range list.Items {
		if affected(&list.Items[i]) {
			out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return out, nil
}

// on returns the markers that a node asks for; none if it is nil.
func on(n *v1alpha1.NodePodProbe) map[types.NamespacedName]bool {
	out := map[types.NamespacedName]bool{}
	if n == nil {
		return out
	}
	for _, p := range n.Spec.PodProbes {
		for _, asked := range p.Probes {
			out[types.NamespacedName{Namespace: p.Namespace, Name: probe.MarkerOf(asked.Name)}] = true
		}
	}
	return out
}
