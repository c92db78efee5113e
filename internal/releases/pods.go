package releases

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/loop"
)

// PodsThat returns the events of Pods of workloads by which the state that concerns is told of has changed. Before is nil for a Pod that was
// created, after for one that is gone.
func (f Finder) PodsThat(concerns func(before, after *corev1.Pod) bool) loop.Watch {
	return loop.Affected(&corev1.Pod{}, func(ctx context.Context, before, after *corev1.Pod) ([]types.NamespacedName, error) {
		if !concerns(before, after) {
			return nil, nil
		}
		if after == nil {
			after = before
		}
		return f.ofController(ctx, after)
	})
}
