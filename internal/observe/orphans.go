package observe

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrOutdated means that a cache shows an owner as it is no more: it is being deleted or gone, perhaps with another one in its place. Nothing may be
// done for it until the cache knows.
var ErrOutdated = errors.New("the cache does not know yet that the owner is gone")

// Adoptable returns the Pods that the owner may take over: those that the selector matches, that nobody controls and that are not being deleted. A
// cache may hold no more of them than what identifies them.
//
// Such Pods may be what the owner itself has left behind by its deletion, of which its cache does not know yet: adopted for one that is gone, they
// would be deleted by the garbage collector, and taken for missing, they would be replaced by others beside them. So the owner is read once more
// from live before there are any, and the error is ErrOutdated where it is not the one that is meant.
func (r Reader) Adoptable(ctx context.Context, live client.Reader, owner client.Object, selector labels.Selector) ([]*corev1.Pod, error) {
	if owner.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	pods, err := r.OrphanPods(ctx, owner.GetNamespace(), selector)
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	now := reflect.New(reflect.TypeOf(owner).Elem()).Interface().(client.Object)
	switch err := live.Get(ctx, client.ObjectKeyFromObject(owner), now); {
	case apierrors.IsNotFound(err):
		return nil, ErrOutdated
	case err != nil:
		return nil, fmt.Errorf("reading the owner of Pods without a controller: %w", err)
	case now.GetUID() != owner.GetUID() || now.GetDeletionTimestamp() != nil:
		return nil, ErrOutdated
	}
	return pods, nil
}

// Nodes returns all nodes.
func (r Reader) Nodes(ctx context.Context) ([]*corev1.Node, error) {
	var list corev1.NodeList
	return List(ctx, r, &list, &list.Items)
}
