package realnode

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// history is every version of every Pod, with the time at which it came.
type history struct {
	mu       sync.Mutex
	versions []version
	stop     func() error
}

type version struct {
	event watch.EventType
	pod   *corev1.Pod
	at    time.Time
}

func (w *world) follow() *history {
	w.Helper()
	h := &history{}
	stop, err := w.Follow(w.Ctx, &corev1.PodList{}, namespace, func(e watch.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.versions = append(h.versions, version{e.Type, e.Object.(*corev1.Pod), time.Now()})
	})
	w.Must(err)
	h.stop = stop
	return h
}

// outOfServiceFirst checks that the Pod was NotReady for the grace period before its image changed.
func (h *history) outOfServiceFirst(t *testing.T, uid types.UID, grace time.Duration) {
	t.Helper()
	var unready, changed time.Time
	first := ""
	for _, v := range h.versions {
		if v.pod.UID != uid {
			continue
		}
		switch image := v.pod.Spec.Containers[0].Image; {
		case first == "":
			first = image
		case image != first && changed.IsZero():
			changed = v.at
		case image == first && unready.IsZero() && !pod.IsReady(v.pod):
			unready = v.at
		}
	}
	// The grace period is counted in whole seconds.
	if unready.IsZero() || changed.Sub(unready) < grace-time.Second {
		t.Errorf("Pod %s was NotReady %s before its image changed, want %s", uid, changed.Sub(unready), grace)
	}
}

// neverFewerReady checks that at no moment fewer Pods were ready.
func (h *history) neverFewerReady(t *testing.T, name string, fewest int) {
	t.Helper()
	ready := map[types.UID]bool{}
	begun := false
	for _, v := range h.versions {
		if v.pod.Labels["app"] != name {
			continue
		}
		ready[v.pod.UID] = v.event != watch.Deleted && v.pod.DeletionTimestamp == nil && pod.IsReady(v.pod)
		n := 0
		for _, isReady := range ready {
			if isReady {
				n++
			}
		}
		begun = begun || n > fewest
		if begun && n < fewest {
			t.Errorf("only %d Pods were ready, want %d at least", n, fewest)
			return
		}
	}
	if !begun {
		t.Error("the Pods were never seen ready")
	}
}

// neverWithoutAReadyPod checks that from the first one on each node had a ready Pod at every moment.
func (h *history) neverWithoutAReadyPod(t *testing.T, name string) {
	t.Helper()
	ready := map[string]map[types.UID]bool{}
	for _, v := range h.versions {
		node := v.pod.Spec.NodeName
		if v.pod.Labels["app"] != name || node == "" {
			continue
		}
		if ready[node] == nil {
			ready[node] = map[types.UID]bool{}
		}
		if v.event != watch.Deleted && v.pod.DeletionTimestamp == nil && pod.IsReady(v.pod) {
			ready[node][v.pod.UID] = true
			continue
		}
		delete(ready[node], v.pod.UID)
		if len(ready[node]) == 0 && v.event != watch.Added {
			t.Errorf("node %s had no ready Pod any more when %s was not", node, v.pod.Name)
		}
	}
	if len(ready) == 0 {
		t.Error("no Pod was seen")
	}
}

// neverUnready checks that the Pod was ready in each of its versions from the first one in which it was.
func (h *history) neverUnready(t *testing.T, name string) {
	t.Helper()
	ready := 0
	for _, v := range h.versions {
		switch {
		case v.pod.Name != name:
		case v.event != watch.Deleted && pod.IsReady(v.pod):
			ready++
		case ready > 0:
			t.Errorf("Pod %s was not ready in version %s: %+v", name, v.pod.ResourceVersion, v.pod.Status.ContainerStatuses)
			return
		}
	}
	if ready == 0 {
		t.Error("the Pod was never seen ready")
	}
}
