package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Cached returns a reader of a cache with the indexes of AddIndexes.
func Cached(ctx context.Context, from cache.Cache) (Reader, error) {
	informer, err := from.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return Reader{}, fmt.Errorf("watching Pods: %w", err)
	}
	r := Reader{Reader: from, Indexed: true}
	r.pods, _ = informer.(heldPods) // any other one is listed
	return r, nil
}

// heldPods are the Pods that a cache holds. Its lists copy each, which takes nearly as long as to classify it.
type heldPods interface {
	HasSynced() bool
	GetIndexer() toolscache.Indexer
}

// byController is the name that the package cache gives to the index ByController.
const byController = "field:" + ByController

// controlledPods returns the Pods of a namespace that the owner controls.
func controlledPods(held heldPods, namespace string, owner types.UID) ([]*corev1.Pod, error) {
	found, err := held.GetIndexer().ByIndex(byController, namespace+"/"+string(owner))
	if err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(found))
	for _, object := range found {
		if p, ok := object.(*corev1.Pod); ok && isControlledBy(p, owner) {
			pods = append(pods, p)
		}
	}
	return pods, nil
}
