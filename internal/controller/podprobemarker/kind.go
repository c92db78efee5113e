package podprobemarker

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// Kind is the controller of PodProbeMarkers.
func Kind() loop.Kind[*v1alpha1.PodProbeMarker, Snapshot, v1alpha1.PodProbeMarkerStatus] {
	return loop.Kind[*v1alpha1.PodProbeMarker, Snapshot, v1alpha1.PodProbeMarkerStatus]{
		Name: "podprobemarker",
		Watches: func(cached observe.Reader) []loop.Watch {
			m := markers{cached}
			return []loop.Watch{
				loop.Affected(&v1alpha1.PodProbeMarker{}, m.ofMarker),
				loop.Affected(&corev1.Pod{}, m.ofPod),
				loop.Affected(&v1alpha1.NodePodProbe{}, m.ofProbes),
			}
		},
		Read:     read,
		Plan:     Plan,
		Status:   Status,
		StatusOf: func(o *v1alpha1.PodProbeMarker) *v1alpha1.PodProbeMarkerStatus { return &o.Status },
	}
}

// markers finds the markers that a change concerns.
type markers struct{ observe.Reader }

// ofPod returns the markers whose count a change of a Pod may change.
func (m markers) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	var counted []labels.Set
	for _, p := range []*corev1.Pod{before, after} {
		if p != nil && probe.IsProbed(p) {
			counted = append(counted, p.Labels)
		}
	}
	if len(counted) == 0 || len(counted) == 2 && labels.Equals(counted[0], counted[1]) {
		return nil, nil
	}
	return m.affected(ctx, cmp.Or(after, before).Namespace, func(marker *v1alpha1.PodProbeMarker) bool {
		selector := probe.Selector(marker)
		return selector != nil && slices.ContainsFunc(counted, func(s labels.Set) bool { return selector.Matches(s) })
	})
}

// ofMarker returns the other markers of the namespace: a marker that comes, changes or goes may take over or give up a condition of theirs.
func (m markers) ofMarker(ctx context.Context, before, after *v1alpha1.PodProbeMarker) ([]types.NamespacedName, error) {
	if before != nil && after != nil && before.Generation == after.Generation {
		return nil, nil
	}
	one := cmp.Or(after, before)
	return m.affected(ctx, one.Namespace, func(marker *v1alpha1.PodProbeMarker) bool { return marker.Name != one.Name })
}

func (m markers) affected(
	ctx context.Context, namespace string, affected func(*v1alpha1.PodProbeMarker) bool,
) ([]types.NamespacedName, error) {
	var list v1alpha1.PodProbeMarkerList
	all, err := observe.List(ctx, m, &list, &list.Items, client.InNamespace(namespace))
	return observe.Keys(all, affected), err
}

// ofProbes returns the markers whose probes were removed from a node.
func (m markers) ofProbes(_ context.Context, before, after *v1alpha1.NodePodProbe) ([]types.NamespacedName, error) {
	removed := markersOf(before)
	for key := range markersOf(after) {
		delete(removed, key)
	}
	return slices.Collect(maps.Keys(removed)), nil
}

// markersOf returns the markers whose probes a node runs; none if it is nil.
func markersOf(n *v1alpha1.NodePodProbe) map[types.NamespacedName]bool {
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

// Snapshot is all that one pass reads.
type Snapshot struct {
	Marker *v1alpha1.PodProbeMarker
	// Pods are those that the marker selects and that can be probed.
	Pods []*corev1.Pod
	// Beside are all markers of the namespace.
	Beside []*v1alpha1.PodProbeMarker
	// Nodes is the number of nodes that run probes of the marker; only counted when the marker is being deleted.
	Nodes int
}

// read makes every read of a pass.
func read(ctx context.Context, r loop.Reads, m *v1alpha1.PodProbeMarker) (v Snapshot, err error) {
	v.Marker = m
	if m.DeletionTimestamp != nil {
		var list v1alpha1.NodePodProbeList
		nodes, err := observe.List(ctx, r, &list, &list.Items)
		for _, node := range nodes {
			if markersOf(node)[client.ObjectKeyFromObject(m)] {
				v.Nodes++
			}
		}
		return v, err
	}
	selector := probe.Selector(m)
	if selector == nil {
		return v, nil
	}
	if v.Pods, err = r.SelectedPods(ctx, m.Namespace, selector); err != nil {
		return v, err
	}
	v.Pods = slices.DeleteFunc(v.Pods, func(p *corev1.Pod) bool { return !probe.IsProbed(p) })
	var markers v1alpha1.PodProbeMarkerList
	v.Beside, err = observe.List(ctx, r, &markers, &markers.Items, client.InNamespace(m.Namespace))
	return v, err
}
