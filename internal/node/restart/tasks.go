package restart

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// stage is a part of stopping a container.
type stage int

const (
	runHook stage = iota
	stopContainer
)

// task is one stage of stopping one container of a Pod. It runs beside the reconciles, none of which starts another task of the Pod
// meanwhile.
type task struct {
	stage stage
	// containerID is of the form runtime://id.
	containerID string
	// ended says that the task has ended, with err after some time; stored that its result is in the status.
	ended, stored bool
	err           error
	took          time.Duration
}

// tasks has the last task of each Pod. That of a hook is kept until the container is stopped, because the hook has used some of its grace.
type tasks struct {
	ctx   context.Context // ends every task
	ended func(pod types.NamespacedName)

	mu    sync.Mutex
	byPod map[types.NamespacedName]*task
}

func newTasks(ctx context.Context, ended func(types.NamespacedName)) *tasks {
	return &tasks{ctx: ctx, ended: ended, byPod: map[types.NamespacedName]*task{}}
}

// busy reports whether a task of the Pod is running.
func (t *tasks) busy(pod types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byPod[pod]
	return known != nil && !known.ended
}

// start starts a task; do carries it out.
func (t *tasks) start(pod types.NamespacedName, what task, do func(context.Context) error) {
	t.mu.Lock()
	t.byPod[pod] = &what
	t.mu.Unlock()
	go func() {
		started := time.Now()
		err := do(t.ctx)
		if t.ctx.Err() != nil {
			return // the process ends: the next one goes on from the stored status
		}
		t.mu.Lock()
		what.ended, what.err, what.took = true, err, time.Since(started)
		t.mu.Unlock()
		t.ended(pod)
	}()
}

// apply sets the result of the last task of a Pod in the status, and reports whether there was one. It can be repeated until setStored is
// called.
func (t *tasks) apply(pod types.NamespacedName, s *v1beta1.ContainerRecreateRequestStatus, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byPod[pod]
	if known == nil || !known.ended || known.stored {
		return false
	}
	for i := range s.ContainerRecreateStates {
		state := &s.ContainerRecreateStates[i]
		if state.ContainerID != known.containerID || state.Phase != v1beta1.ContainerRecreateRequestRecreating {
			continue
		}
		switch {
		case cri.IsAway(known.err):
			// The runtime has not received the request: it is tried again.
		case known.stage == runHook:
			at := metav1.NewTime(now).Rfc3339Copy()
			state.PreStopTime = &at
		case known.err != nil:
			state.Phase, state.Message = v1beta1.ContainerRecreateRequestFailed, "kill container error: "+known.err.Error()
		}
	}
	return true
}

// setStored says that the result of the last task of a Pod is in the status.
func (t *tasks) setStored(pod types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byPod[pod]; known != nil && known.stage == runHook {
		known.stored = true
		return
	}
	delete(t.byPod, pod)
}

// drop forgets the last task of a Pod for which there are no requests any more, unless it is running.
func (t *tasks) drop(pod types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byPod[pod]; known != nil && known.ended {
		delete(t.byPod, pod)
	}
}

// hookTook returns how long the hook of a container took; 0 if it has none.
func (t *tasks) hookTook(pod types.NamespacedName, containerID string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byPod[pod]; known != nil && known.stage == runHook && known.containerID == containerID {
		return known.took
	}
	return 0
}

// target is a container to stop.
type target struct {
	recreate.Kill
	request *v1beta1.ContainerRecreateRequest
	pod     *corev1.Pod
	runtime *cri.Runtime
	// resumed says that an earlier daemon, or an earlier try, has started to stop it.
	resumed bool
}

func (t target) grace() time.Duration {
	if s := t.request.Spec.Strategy; s != nil && s.TerminationGracePeriodSeconds != nil {
		return pod.Seconds(*s.TerminationGracePeriodSeconds)
	}
	return lifecycle.Grace(t.pod)
}

func (t target) container() v1beta1.ContainerRecreateRequestContainer {
	i := slices.IndexFunc(t.request.Spec.Containers, func(c v1beta1.ContainerRecreateRequestContainer) bool { return c.Name == t.Name })
	return t.request.Spec.Containers[i] // the rules name containers of the request only
}

// kill starts to run the hook of a container, if it has one that has not run, or else to stop it.
func (w *reconciler) kill(ctx context.Context, t target) {
	logger := log.FromContext(ctx).WithValues("request", t.request.Name, "container", t.Name, "containerID", t.ID)
	_, id, err := cri.SplitID(t.ID)
	if err != nil {
		logger.Error(err, "The container can't be stopped")
		return
	}
	if !t.resumed {
		w.Events.Eventf(lifecycle.ContainerRef(t.pod, t.Name), corev1.EventTypeNormal, "Killing",
			"Stopping container %s by ContainerRecreateRequest %s", t.Name, t.request.Name)
	}
	key := client.ObjectKeyFromObject(t.pod)
	grace := t.grace()
	if container := t.container(); container.PreStop != nil && !t.SkipPreStop && grace > 0 {
		logger.Info("Running the hook of a container that is to be stopped", "limit", grace)
		h := lifecycle.Hook{
			Runtime: t.runtime, ID: id, Container: t.Name, Pod: t.pod,
			Handler: container.PreStop, Ports: container.Ports, Grace: grace, Events: w.Events,
		}
		w.tasks.start(key, task{stage: runHook, containerID: t.ID}, h.Run)
		return
	}
	left := lifecycle.GraceLeft(grace, w.tasks.hookTook(key, t.ID))
	logger.Info("Stopping a container", "grace", left)
	w.tasks.start(key, task{stage: stopContainer, containerID: t.ID}, func(ctx context.Context) error {
		return t.runtime.StopContainer(ctx, id, left)
	})
}
