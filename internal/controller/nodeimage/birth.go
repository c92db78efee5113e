package nodeimage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Newcomer is a node, and whether it has a NodeImage.
type Newcomer struct {
	Node *corev1.Node
	Has  bool
	Now  time.Time
	// Delay is how long a node must have been Ready before it gets a NodeImage: new nodes are busy enough.
	Delay time.Duration
}

// observeNewcomer makes every read of a pass over a node.
func (c Config) observeNewcomer(ctx context.Context, r observe.Reader, node *corev1.Node) (Newcomer, error) {
	out := Newcomer{Node: node, Now: c.Now(), Delay: c.CreationDelay}
	err := r.Get(ctx, client.ObjectKey{Name: node.Name}, &v1beta1.NodeImage{})
	if err != nil && !apierrors.IsNotFound(err) {
		return Newcomer{}, fmt.Errorf("reading NodeImage %s: %w", node.Name, err)
	}
	out.Has = err == nil
	return out, nil
}

// PlanBirth makes the NodeImage of a node once it has been Ready for long enough.
func PlanBirth(n Newcomer) plan.Plan {
	b := plan.For("Node " + n.Node.Name)
	if n.Has || n.Node.DeletionTimestamp != nil || isVirtual(n.Node) {
		return b.Plan()
	}
	since, ready := readySince(n.Node)
	if !ready {
		return b.Plan()
	}
	if wait := since.Add(n.Delay).Sub(n.Now); wait > 0 {
		b.Recheck(wait, "the node gets its NodeImage")
		return b.Plan()
	}
	b.Do(plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: newNodeImage(n.Node),
		What: "create the NodeImage", Why: fmt.Sprintf("the node has been ready for %s", n.Delay),
	})
	return b.Plan()
}

// newNodeImage returns an empty NodeImage. It goes with its node.
func newNodeImage(node *corev1.Node) *v1beta1.NodeImage {
	isController := true
	return &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, Labels: node.Labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &isController}},
	}}
}

// isVirtual reports whether there is no machine behind the node.
func isVirtual(n *corev1.Node) bool { return n.Labels[keys.NodeType] == keys.NodeTypeVirtual }

// readySince returns since when a node has been Ready; false for one that is not.
func readySince(n *corev1.Node) (time.Time, bool) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// ofNode returns a node itself when it matters to the loop over nodes: when it comes, becomes Ready, or has become something with a machine.
func ofNode(_ context.Context, before, after *corev1.Node) ([]types.NamespacedName, error) {
	if after == nil {
		return nil, nil
	}
	if before != nil {
		_, was := readySince(before)
		_, is := readySince(after)
		if was == is && isVirtual(before) == isVirtual(after) && before.UID == after.UID {
			return nil, nil
		}
	}
	return []types.NamespacedName{{Name: after.Name}}, nil
}

// ofLost returns the node whose NodeImage has gone.
func ofLost(_ context.Context, before, after *v1beta1.NodeImage) ([]types.NamespacedName, error) {
	if after != nil {
		return nil, nil
	}
	return []types.NamespacedName{{Name: before.Name}}, nil
}
