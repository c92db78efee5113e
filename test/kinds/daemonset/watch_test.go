package daemonset

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// record is the most that was ever seen of what is limited, over every version of every Pod that the API server told of.
type record struct {
	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
	// down is the most nodes without a ready Pod at a time, pairs the most with two Pods that are not being deleted, and total the most Pods.
	down, pairs, total int
	// order is the nodes in the order in which they got a Pod of another image than the one they had.
	order []string
	had   map[string]string
}

// watch records what happens to the test's Pods from now on.
func (e *env) watch() *record {
	e.Helper()
	r := &record{pods: map[types.UID]*corev1.Pod{}, had: map[string]string{}}
	for _, p := range e.allPods() {
		r.pods[p.UID] = &p
		r.had[nodeOf(&p)] = p.Spec.Containers[0].Image
	}
	stop, err := e.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		if p, ok := event.Object.(*corev1.Pod); ok {
			r.take(event.Type, p, e.Nodes)
		}
	})
	e.Must(err)
	e.Cleanup(func() {
		if err := stop(); err != nil {
			e.Error(err)
		}
	})
	return r
}

func (r *record) take(kind watch.EventType, p *corev1.Pod, nodes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods[p.UID] = p; kind == watch.Deleted {
		delete(r.pods, p.UID)
	}
	if image := p.Spec.Containers[0].Image; kind != watch.Deleted && p.DeletionTimestamp == nil && r.had[nodeOf(p)] != image {
		r.had[nodeOf(p)] = image
		r.order = append(r.order, nodeOf(p))
	}
	ready, live := map[string]int{}, map[string]int{}
	for _, p := range r.pods {
		if scene.IsReady(p) && p.DeletionTimestamp == nil {
			ready[nodeOf(p)]++
		}
		if p.DeletionTimestamp == nil {
			live[nodeOf(p)]++
		}
	}
	down, pairs := 0, 0
	for _, node := range nodes {
		if ready[node] == 0 {
			down++
		}
		if live[node] > 1 {
			pairs++
		}
	}
	r.down, r.pairs, r.total = max(r.down, down), max(r.pairs, pairs), max(r.total, len(r.pods))
}

// most checks what was seen until now.
func (r *record) most(e *env, down, pairs int) {
	e.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down > down || r.pairs > pairs {
		e.Errorf("%d nodes were without a ready Pod at a time, and %d had two; want %d and %d at most", r.down, r.pairs, down, pairs)
	}
}

// course notes how the gate of updates in place and the image change, over all Pods, and returns that when it is asked.
func (e *env) course() func() []string {
	e.Helper()
	var out []string
	stop, err := e.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		p, ok := event.Object.(*corev1.Pod)
		if !ok {
			return
		}
		for _, c := range p.Status.Conditions {
			if now := string(c.Status) + " " + p.Spec.Containers[0].Image; c.Type == "InPlaceUpdateReady" && (len(out) == 0 || out[len(out)-1] != now) {
				out = append(out, now)
			}
		}
	})
	e.Must(err)
	return func() []string {
		e.Must(stop())
		return out
	}
}
