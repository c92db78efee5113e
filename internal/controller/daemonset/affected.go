package daemonset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Sets finds the DaemonSets that something concerns that does not say so itself.
type Sets struct {
	// Reader is a cache.
	client.Reader
}

// OfOrphan returns the DaemonSets that could adopt a Pod that nobody controls.
func (s Sets) OfOrphan(ctx context.Context, _, after *corev1.Pod) ([]types.NamespacedName, error) {
	if after == nil || after.DeletionTimestamp != nil || metav1.GetControllerOfNoCopy(after) != nil || len(after.Labels) == 0 {
		return nil, nil
	}
	return s.those(ctx, after.Namespace, func(set *v1beta1.DaemonSet) bool {
		selector, err := pod.Selector(set.Spec.Selector)
		return err == nil && selector.Matches(labels.Set(after.Labels))
	})
}

// OfNode returns the DaemonSets for which the coming, going or changing of a node makes a difference. Most changes of nodes are heartbeats, which
// make none and cost no more than a comparison.
func (s Sets) OfNode(ctx context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if before != nil && after != nil && !nodefit.Changed(before, after) {
		return nil, nil
	}
	return s.those(ctx, "", func(set *v1beta1.DaemonSet) bool {
		return whatFits(set, before) != whatFits(set, after)
	})
}

// fitting is all that a DaemonSet asks of a node.
type fitting struct {
	verdict  nodefit.Verdict
	selected bool
}

func whatFits(set *v1beta1.DaemonSet, node *corev1.Node) fitting {
	if node == nil {
		return fitting{}
	}
	out := fitting{verdict: nodefit.Of(&set.Spec.Template.Spec).On(node)}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(rolling.Selector)
		out.selected = err == nil && selector.Matches(labels.Set(node.Labels))
	}
	return out
}

func (s Sets) those(ctx context.Context, namespace string, affected func(*v1beta1.DaemonSet) bool) ([]types.NamespacedName, error) {
	var all v1beta1.DaemonSetList
	if err := s.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var out []types.NamespacedName
	for i := range all.Items {
		if affected(&all.Items[i]) {
			out = append(out, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return out, nil
}
