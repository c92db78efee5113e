package podprobemarker

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Marker *v1alpha1.PodProbeMarker
	// Pods are those that the marker selects and that can be asked.
	Pods []*corev1.Pod
	// Beside are all markers of the namespace.
	Beside []*v1alpha1.PodProbeMarker
	// Asking is the number of nodes that ask for the marker; only looked for when the marker is being deleted.
	Asking int
}

// read makes every read of a pass.
func read(ctx context.Context, r loop.Reads, m *v1alpha1.PodProbeMarker) (v Snapshot, err error) {
	v.Marker = m
	if m.DeletionTimestamp != nil {
		var list v1alpha1.NodePodProbeList
		nodes, err := observe.List(ctx, r, &list, &list.Items)
		for _, node := range nodes {
			if markersOf(node)[client.ObjectKeyFromObject(m)] {
				v.Asking++
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
