package facts

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
)

const (
	// maxParallelStops is the number of containers that are stopped at the same time.
	maxParallelStops = 10
	// A container that runs with the old environment again, or could not be stopped, is stopped again after a pause that doubles.
	firstBackoff, maxBackoff = 3 * time.Second, 10 * time.Minute
)

// restarts stops containers that have to be restarted, each once; the kubelet starts them.
type restarts struct {
	worker.Config
	ctx   context.Context // ends hooks
	slots *semaphore.Weighted

	mu sync.Mutex
	// pods has the restarts by the name of the container, because its ID changes.
	pods map[types.NamespacedName]map[string]*restart
}

// restart is the restart of one container.
type restart struct {
	// stopping says that the container is being stopped, unwanted that it need not be restarted any more: the restart is forgotten once it
	// has been.
	stopping, unwanted bool
	backoff            wait.Backoff
	// notBefore is when the container may be stopped again.
	notBefore time.Time
}

func newRestarts(ctx context.Context, c worker.Config) *restarts {
	return &restarts{
		Config: c, ctx: ctx, slots: semaphore.NewWeighted(maxParallelStops), pods: map[types.NamespacedName]map[string]*restart{},
	}
}

// forget forgets the restarts of a Pod, except of containers that are being stopped: they must not be stopped a second time at the same
// time.
func (r *restarts) forget(pod types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.pods[pod] {
		known.unwanted = true
	}
	r.prune(pod)
}

// prune removes the restarts of a Pod that are neither wanted nor stopping. The caller holds the lock.
func (r *restarts) prune(pod types.NamespacedName) {
	maps.DeleteFunc(r.pods[pod], func(_ string, known *restart) bool { return known.unwanted && !known.stopping })
	if len(r.pods[pod]) == 0 {
		delete(r.pods, pod)
	}
}

// stop stops those containers of a Pod that have to be restarted and are not being stopped yet. It returns when to reconcile again; 0 when
// no container has to be restarted.
func (r *restarts) stop(ctx context.Context, p *corev1.Pod, ids []string) time.Duration {
	key := client.ObjectKeyFromObject(p)
	if len(ids) == 0 {
		r.forget(key)
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods[key] == nil {
		r.pods[key] = map[string]*restart{}
	}
	again, now := maxBackoff, r.Now()
	for _, c := range containers(p) {
		if !slices.Contains(ids, c.status.ContainerID) {
			continue
		}
		known := r.pods[key][c.spec.Name]
		if known == nil {
			known = &restart{backoff: wait.Backoff{Duration: firstBackoff, Factor: 2, Cap: maxBackoff, Steps: math.MaxInt32}}
			r.pods[key][c.spec.Name] = known
		}
		known.unwanted = false
		if !known.stopping && !now.Before(known.notBefore) {
			log.FromContext(ctx).Info(
				"Stopping a container that runs with labels or annotations that have changed", "container", c.spec.Name,
			)
			r.Events.Eventf(lifecycle.ContainerRef(p, c.spec.Name), corev1.EventTypeNormal, "Killing",
				"Stopping container %s to start it with the labels and annotations of the update", c.spec.Name)
			known.stopping = true
			go r.stopOne(known, p, c)
		}
		again = min(again, max(firstBackoff, known.notBefore.Sub(now)))
	}
	return again
}

// stopOne runs the hook of a container and stops it.
func (r *restarts) stopOne(known *restart, p *corev1.Pod, c container) {
	err := r.slots.Acquire(r.ctx, 1)
	if err == nil {
		if r.isWanted(known) {
			err = r.stopContainer(p, c)
		}
		r.slots.Release(1)
	}
	if r.ctx.Err() == nil && err != nil {
		log.Log.WithName("facts").Error(err, "A container could not be stopped",
			"pod", client.ObjectKeyFromObject(p), "containerID", c.status.ContainerID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known.stopping = false
	known.notBefore = r.Now().Add(known.backoff.Step())
	r.prune(client.ObjectKeyFromObject(p))
}

// isWanted reports whether a container still has to be restarted: while it waited for others to be stopped, the update may have been
// reverted.
func (r *restarts) isWanted(known *restart) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !known.unwanted
}

// stopContainer runs the hook of a container, if it has one, and stops the container. A hook that fails does not keep it from being
// stopped, unless the hook did not run because the runtime is away.
func (r *restarts) stopContainer(p *corev1.Pod, c container) error {
	runtime, id, err := r.Runtimes.Of(c.status.ContainerID)
	if err != nil {
		return err
	}
	grace, used := lifecycle.Grace(p), time.Duration(0)
	if handlers := c.spec.Lifecycle; handlers != nil && handlers.PreStop != nil && grace > 0 {
		started := r.Now()
		err := lifecycle.Hook{
			Runtime: runtime, ID: id, Container: c.spec.Name, Pod: p,
			Handler: handlers.PreStop, Ports: c.spec.Ports, Grace: grace, Events: r.Events,
		}.Run(r.ctx)
		if r.ctx.Err() != nil || cri.IsAway(err) {
			return err // the next daemon, or the next try, starts from the beginning
		}
		used = r.Now().Sub(started)
	}
	return runtime.StopContainer(r.ctx, id, lifecycle.GraceLeft(grace, used))
}
