package observe

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Adoptable returns the Pods that the owner may take over: those that the selector matches, that nobody controls and that are not being deleted. A
// cache may hold no more of them than what identifies them, and may not know yet that the owner is gone, perhaps with another one in its place:
// Pods adopted for one that is gone would be deleted by the garbage collector. So the owner is read once more from live before there are any.
func (r Reader) Adoptable(ctx context.Context, live client.Reader, owner client.Object, selector labels.Selector) ([]*corev1.Pod, error) {
	if owner.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	found, err := r.OrphanPods(ctx, owner.GetNamespace(), selector)
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for _, p := range found {
		if p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 {
		return nil, nil
	}
	now := reflect.New(reflect.TypeOf(owner).Elem()).Interface().(client.Object)
	if err := live.Get(ctx, client.ObjectKeyFromObject(owner), now); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if now.GetUID() != owner.GetUID() || now.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return pods, nil
}

// Nodes returns all nodes.
func (r Reader) Nodes(ctx context.Context) ([]*corev1.Node, error) {
	var list corev1.NodeList
	var options []client.ListOption
	if r.Indexed {
		options = append(options, client.UnsafeDisableDeepCopy)
	}
	if err := r.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	nodes := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		nodes[i] = &list.Items[i]
	}
	return nodes, nil
}
