package nodepodprobe

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

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
