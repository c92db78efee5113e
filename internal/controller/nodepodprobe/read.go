package nodepodprobe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

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
	known := map[string]bool{}
	for _, p := range v.Pods {
		if known[p.Namespace] {
			continue
		}
		known[p.Namespace] = true
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
