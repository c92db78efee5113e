package restart

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
)

// written has what the last writes of requests returned, by Pod and UID: the cache may be older, and a decision about what it says then is
// refused as a conflict.
type written struct {
	mu    sync.Mutex
	byPod map[types.NamespacedName]map[types.UID]*v1beta1.ContainerRecreateRequest
}

// add notes what a write returned, which nobody may change afterwards.
func (w *written) add(r *v1beta1.ContainerRecreateRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.PodName}
	if w.byPod == nil {
		w.byPod = map[types.NamespacedName]map[types.UID]*v1beta1.ContainerRecreateRequest{}
	}
	if w.byPod[pod] == nil {
		w.byPod[pod] = map[types.UID]*v1beta1.ContainerRecreateRequest{}
	}
	w.byPod[pod][r.UID] = r
}

// newest returns what the last write of a request returned, until the cache has it or a later version.
func (w *written) newest(pod types.NamespacedName, cached *v1beta1.ContainerRecreateRequest) *v1beta1.ContainerRecreateRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.byPod[pod][cached.UID]
	if last != nil && worker.IsOlder(cached, last) {
		return last
	}
	delete(w.byPod[pod], cached.UID)
	return cached
}

// drop forgets the requests of a Pod that has none any more.
func (w *written) drop(pod types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byPod, pod)
}
