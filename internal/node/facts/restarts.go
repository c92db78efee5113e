package facts

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// parallelStops is the number of containers that are stopped at the same time.
	parallelStops = 10
	// A container that runs with the old environment again, or would not stop, is stopped again after a pause that doubles.
	firstPause, longestPause = 3 * time.Second, 10 * time.Minute
	// defaultGrace is what a container has to end by itself if its Pod does not say.
	defaultGrace = 30 * time.Second
	leastGrace   = 2 * time.Second
)

// restarts stops containers that have to start anew, each once; the kubelet starts them.
type restarts struct {
	Config
	life  context.Context
	slots *semaphore.Weighted

	mu   sync.Mutex
	pods map[types.NamespacedName]map[string]*pause
}

// pause is what a container of a Pod has to wait for, by name, because the one that is started next has another ID.
type pause struct {
	stopping bool
	length   time.Duration
	until    time.Time
}

func newRestarts(life context.Context, c Config) *restarts {
	return &restarts{Config: c, life: life, slots: semaphore.NewWeighted(parallelStops), pods: map[types.NamespacedName]map[string]*pause{}}
}

func (r *restarts) forget(pod types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, pod)
}

// bring stops those containers of a Pod that have to start anew and are not being stopped yet. It returns when to look again; 0 when nothing has to
// be restarted.
func (r *restarts) bring(ctx context.Context, p *corev1.Pod, ids []string) time.Duration {
	key := client.ObjectKeyFromObject(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(ids) == 0 {
		delete(r.pods, key)
		return 0
	}
	if r.pods[key] == nil {
		r.pods[key] = map[string]*pause{}
	}
	again := longestPause
	now := r.Now()
	for _, c := range containers(p) {
		for _, id := range ids {
			if c.status.ContainerID != id {
				continue
			}
			known := r.pods[key][c.spec.Name]
			if known == nil {
				known = &pause{}
				r.pods[key][c.spec.Name] = known
			}
			if !known.stopping && !now.Before(known.until) {
				log.FromContext(ctx).Info("Stopping a container, for it runs with labels or annotations that have changed", "container", c.spec.Name)
				r.Events.Eventf(p, corev1.EventTypeNormal, "Killing", "Stopping container %s to start it with the labels and annotations of the update", c.spec.Name)
				r.stop(known, p, id)
			}
			again = min(again, max(firstPause, known.until.Sub(now)))
		}
	}
	return again
}

// stop stops a container and does not wait until it has ended. The caller has the lock.
func (r *restarts) stop(known *pause, p *corev1.Pod, containerID string) {
	grace := defaultGrace
	if p.Spec.TerminationGracePeriodSeconds != nil {
		grace = max(leastGrace, time.Duration(ptr.Deref(p.Spec.TerminationGracePeriodSeconds, 0))*time.Second)
	}
	known.stopping = true
	go func() {
		err := r.slots.Acquire(r.life, 1)
		if err == nil {
			runtime, id, ofErr := r.Runtimes.Of(containerID)
			if err = ofErr; err == nil {
				err = runtime.StopContainer(r.life, id, grace)
			}
			r.slots.Release(1)
		}
		if r.life.Err() == nil && err != nil {
			log.Log.WithName("facts").Error(err, "A container could not be stopped", "pod", client.ObjectKeyFromObject(p), "containerID", containerID)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		known.stopping = false
		known.length = min(max(firstPause, 2*known.length), longestPause)
		known.until = r.Now().Add(known.length)
	}()
}
