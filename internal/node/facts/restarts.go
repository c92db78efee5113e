package facts

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/prestop"
)

const (
	// parallelStops is the number of containers that are stopped at the same time.
	parallelStops = 10
	// A container that runs with the old environment again, or would not stop, is stopped again after a pause that doubles.
	firstPause, longestPause = 3 * time.Second, 10 * time.Minute
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
	// stopping says that it is being stopped, unwanted that nobody asks for it any more: it is dropped then once it has been.
	stopping, unwanted bool
	length             time.Duration
	until              time.Time
}

func newRestarts(life context.Context, c Config) *restarts {
	return &restarts{Config: c, life: life, slots: semaphore.NewWeighted(parallelStops), pods: map[types.NamespacedName]map[string]*pause{}}
}

func (r *restarts) forget(pod types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(pod)
}

// drop forgets what is known of a Pod, but for what is being stopped: it must not be stopped beside itself when it is asked for again. The caller
// has the lock.
func (r *restarts) drop(pod types.NamespacedName) {
	for name, known := range r.pods[pod] {
		known.unwanted = true
		if !known.stopping {
			delete(r.pods[pod], name)
		}
	}
	if len(r.pods[pod]) == 0 {
		delete(r.pods, pod)
	}
}

// bring stops those containers of a Pod that have to start anew and are not being stopped yet. It returns when to look again; 0 when nothing has to
// be restarted.
func (r *restarts) bring(ctx context.Context, p *corev1.Pod, ids []string) time.Duration {
	key := client.ObjectKeyFromObject(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(ids) == 0 {
		r.drop(key)
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
			known.unwanted = false
			if !known.stopping && !now.Before(known.until) {
				log.FromContext(ctx).Info("Stopping a container, for it runs with labels or annotations that have changed", "container", c.spec.Name)
				r.Events.Eventf(prestop.About(p, c.spec.Name), corev1.EventTypeNormal, "Killing", "Stopping container %s to start it with the labels and annotations of the update", c.spec.Name)
				r.stop(known, p, c)
			}
			again = min(again, max(firstPause, known.until.Sub(now)))
		}
	}
	return again
}

// stop runs the hook of a container and stops it, and does not wait until it has ended. The caller has the lock.
func (r *restarts) stop(known *pause, p *corev1.Pod, c container) {
	known.stopping = true
	go func() {
		err := r.slots.Acquire(r.life, 1)
		if err == nil {
			if r.isWanted(known) {
				err = r.end(p, c)
			}
			r.slots.Release(1)
		}
		if r.life.Err() == nil && err != nil {
			log.Log.WithName("facts").Error(err, "A container could not be stopped", "pod", client.ObjectKeyFromObject(p), "containerID", c.status.ContainerID)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		known.stopping = false
		known.length = min(max(firstPause, 2*known.length), longestPause)
		known.until = r.Now().Add(known.length)
		if key := client.ObjectKeyFromObject(p); known.unwanted {
			delete(r.pods[key], c.spec.Name)
			if len(r.pods[key]) == 0 {
				delete(r.pods, key)
			}
		}
	}()
}

// isWanted reports whether a container still has to be stopped: others may have been stopped first, and the update been taken back meanwhile.
func (r *restarts) isWanted(known *pause) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !known.unwanted
}

// end runs the hook of a container, if it has one, and stops the container. A hook that fails does not keep it from being stopped; one that could
// not be asked for, because the runtime is away, does.
func (r *restarts) end(p *corev1.Pod, c container) error {
	runtime, id, err := r.Runtimes.Of(c.status.ContainerID)
	if err != nil {
		return err
	}
	grace, used := prestop.Grace(p), time.Duration(0)
	if asked := c.spec.Lifecycle; asked != nil && asked.PreStop != nil && grace > 0 {
		begun := r.Now()
		err := prestop.Hook{
			Runtime: runtime, ID: id, Container: c.spec.Name, Pod: p, Asked: asked.PreStop, Ports: c.spec.Ports, Grace: grace, Events: r.Events,
		}.Run(r.life)
		if r.life.Err() != nil || cri.IsAway(err) {
			return err // the next life of the daemon, or the next try, begins anew
		}
		used = r.Now().Sub(begun)
	}
	return runtime.StopContainer(r.life, id, prestop.Rest(grace, used))
}
