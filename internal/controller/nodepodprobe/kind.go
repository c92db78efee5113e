package nodepodprobe

import (
	"cmp"
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
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// byNode is the index of Pods by the name of their node. The API server knows a field of this name, too.
const byNode = "spec.nodeName"

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// Virtual also reads the results that providers of virtual nodes write on Pods themselves.
	Virtual bool
}

// Kind is the controller of what is asked on a node. Its owners are nodes, which it never writes.
func Kind(o Options) loop.Kind[*corev1.Node, Snapshot, corev1.NodeStatus] {
	return loop.Kind[*corev1.Node, Snapshot, corev1.NodeStatus]{
		Name:     "nodepodprobe",
		Indexes:  addIndex,
		Concerns: concerns,
		Watches: func(cached observe.Reader) []loop.Watch {
			n := nodes{cached}
			return []loop.Watch{
				loop.Affected(&corev1.Node{}, n.deleted),
				loop.Affected(&v1alpha1.NodePodProbe{}, n.ofProbes),
				loop.Affected(&v1alpha1.PodProbeMarker{}, n.ofMarker),
				loop.Affected(&corev1.Pod{}, n.ofPod),
			}
		},
		Read:    o.read,
		Plan:    Plan,
		Deleted: deleted,
	}
}

func addIndex(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, byNode, func(object client.Object) []string {
		return []string{object.(*corev1.Pod).Spec.NodeName}
	})
	if err != nil {
		return fmt.Errorf("indexing Pods by node: %w", err)
	}
	return nil
}

// concerns reports whether a node comes, is being deleted, or becomes another kind of node. Its heartbeats make no difference.
func concerns(before, after *corev1.Node) bool {
	return before == nil || before.UID != after.UID || before.Labels[keys.NodeType] != after.Labels[keys.NodeType] ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
}

// nodes finds the nodes that a change concerns.
type nodes struct{ observe.Reader }

// deleted returns a node that is gone: its NodePodProbe goes as well.
func (nodes) deleted(_ context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if after != nil {
		return nil, nil
	}
	return []types.NamespacedName{{Name: before.Name}}, nil
}

// ofProbes returns the node that a NodePodProbe is of.
func (nodes) ofProbes(_ context.Context, before, after *v1alpha1.NodePodProbe) ([]types.NamespacedName, error) {
	if before != nil && after != nil && before.ResourceVersion == after.ResourceVersion {
		return nil, nil
	}
	return []types.NamespacedName{{Name: cmp.Or(after, before).Name}}, nil
}

// ofPod returns the node of a Pod that a marker selects, or did before.
func (n nodes) ofPod(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
	one := cmp.Or(after, before)
	if one.Spec.NodeName == "" || before != nil && after != nil && sameForProbes(before, after) {
		return nil, nil
	}
	var list v1alpha1.PodProbeMarkerList
	markers, err := observe.List(ctx, n, &list, &list.Items, client.InNamespace(one.Namespace))
	for _, marker := range markers {
		selector := probe.Selector(marker)
		for _, p := range []*corev1.Pod{before, after} {
			if selector != nil && p != nil && selector.Matches(labels.Set(p.Labels)) {
				return []types.NamespacedName{{Name: one.Spec.NodeName}}, nil
			}
		}
	}
	return nil, err
}

// sameForProbes reports whether nothing has changed that matters here: what a Pod is asked, and what is written on it.
func sameForProbes(a, b *corev1.Pod) bool {
	return a.Spec.NodeName == b.Spec.NodeName && a.Status.PodIP == b.Status.PodIP && probe.IsProbed(a) == probe.IsProbed(b) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Status.Conditions, b.Status.Conditions)
}

// ofMarker returns the nodes with Pods that a marker selects. Its selector does not change.
func (n nodes) ofMarker(ctx context.Context, before, after *v1alpha1.PodProbeMarker) ([]types.NamespacedName, error) {
	one := cmp.Or(after, before)
	selector := probe.Selector(one)
	if selector == nil || before != nil && after != nil && before.Generation == after.Generation {
		return nil, nil
	}
	pods, err := n.SelectedPods(ctx, one.Namespace, selector)
	names := map[types.NamespacedName]bool{}
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			names[types.NamespacedName{Name: p.Spec.NodeName}] = true
		}
	}
	return slices.Collect(maps.Keys(names)), err
}

// Snapshot is all that one pass reads.
type Snapshot struct {
	Node *corev1.Node
	// Probes is the NodePodProbe of the node; nil if there is none.
	Probes *v1alpha1.NodePodProbe
	// Pods are those on the node.
	Pods []*corev1.Pod
	// Markers are those of the namespaces of these Pods.
	Markers []*v1alpha1.PodProbeMarker
	Options Options
}

// read makes every read of a pass.
func (o Options) read(ctx context.Context, r loop.Reads, node *corev1.Node) (v Snapshot, err error) {
	v.Node, v.Options = node, o
	if v.Probes, err = observe.Find(ctx, r, client.ObjectKeyFromObject(node), &v1alpha1.NodePodProbe{}); err != nil {
		return v, err
	}
	var pods corev1.PodList
	if v.Pods, err = observe.List(ctx, r, &pods, &pods.Items, client.MatchingFields{byNode: node.Name}); err != nil {
		return v, err
	}
	namespaces := map[string]bool{}
	for _, p := range v.Pods {
		if namespaces[p.Namespace] {
			continue
		}
		namespaces[p.Namespace] = true
		var list v1alpha1.PodProbeMarkerList
		markers, err := observe.List(ctx, r, &list, &list.Items, client.InNamespace(p.Namespace))
		if err != nil {
			return v, err
		}
		v.Markers = append(v.Markers, markers...)
	}
	return v, nil
}

// deleted removes what a deleted node has left behind.
func deleted(ctx context.Context, r loop.Reads, node types.NamespacedName) (plan.Object, plan.Plan, error) {
	left, err := observe.Find(ctx, r, node, &v1alpha1.NodePodProbe{})
	b := plan.For("Node " + node.Name + " is gone")
	if left != nil {
		b.Do(remove(left, "its node is gone"))
	}
	return left, b.Plan(), err
}
