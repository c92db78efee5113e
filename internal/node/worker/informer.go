package worker

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// NewInformer returns the informer of a kind. That of Pods lists them before it watches them, and does not have a watch begin with what
// there is: an API server looks up the Pods of a node for a list, but for the beginning of a watch it goes through all Pods of the
// cluster, and sorts them. Thousands of daemons that start at the same time would keep it busy for many minutes.
func NewInformer(
	from toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	if _, isPod := kind.(*corev1.Pod); isPod {
		from = listFirst{from, toolscache.ToListerWatcherWithContext(from)}
	}
	return toolscache.NewSharedIndexInformer(from, kind, resync, indexers)
}

// listFirst is a source of objects that are listed before they are watched.
type listFirst struct {
	toolscache.ListerWatcher
	toolscache.ListerWatcherWithContext
}

// IsWatchListSemanticsUnSupported is what reflectors ask before they have a watch begin with all objects.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }
