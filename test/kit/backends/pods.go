package backends

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// Serve runs a server for each Pod of a namespace as long as the containers of the Pod run, and until the function that it returns is
// called, which says what went wrong.
func (n *Network) Serve(ctx context.Context, c *cluster.Cluster, namespace string) (stop func() error, err error) {
	s := &servers{network: n, byPod: map[types.UID]*server{}}
	unfollow, err := c.Follow(ctx, &corev1.PodList{}, namespace, s.see)
	if err != nil {
		return nil, err
	}
	return func() error {
		missed := unfollow()
		s.mu.Lock()
		defer s.mu.Unlock()
		for uid := range s.byPod {
			s.end(uid)
		}
		return errors.Join(missed, s.failed)
	}, nil
}

// servers are those of the Pods of a namespace.
type servers struct {
	network *Network

	mu     sync.Mutex
	byPod  map[types.UID]*server
	failed error
}

// see takes note of what has become of a Pod.
func (s *servers) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	served := s.byPod[pod.UID]
	switch {
	case event.Type == watch.Deleted || !runs(pod):
		s.end(pod.UID)
	case served != nil && pod.DeletionTimestamp != nil:
		served.stop(pod)
	case served == nil && pod.DeletionTimestamp == nil:
		started, err := s.network.start(pod)
		if err != nil {
			s.failed = errors.Join(s.failed, err)
			return
		}
		s.byPod[pod.UID] = started
	}
}

// end ends a server at once, as a process that is killed.
func (s *servers) end(uid types.UID) {
	if served := s.byPod[uid]; served != nil {
		_ = served.Close() // there is nobody to tell
		delete(s.byPod, uid)
	}
}

// runs tells whether the first container of a Pod runs.
func runs(pod *corev1.Pod) bool {
	statuses := pod.Status.ContainerStatuses
	return pod.Status.PodIP != "" && len(statuses) > 0 && statuses[0].State.Running != nil
}
