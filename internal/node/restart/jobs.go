package restart

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/prestop"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// stage is a part of stopping a container.
type stage int

const (
	hook stage = iota
	stop
)

// job is one stage of stopping one container of a Pod. Hooks and containers take their time, in which the next look must not begin another one.
type job struct {
	stage stage
	// containerID is the container, as runtime://id.
	containerID string
	// ended says that the job has, with err. A hook had used so much of the grace by then.
	ended bool
	err   error
	used  time.Duration
}

// jobs are those of all Pods, one for each.
type jobs struct {
	life  context.Context // jobs live as long as the process
	ended func(pod types.NamespacedName)

	mu    sync.Mutex
	byPod map[types.NamespacedName]*job
	// used is how much of its grace the hook of a container took, by the container's identity, until the container is stopped.
	used map[string]time.Duration
}

func newJobs(life context.Context, ended func(types.NamespacedName)) *jobs {
	return &jobs{life: life, ended: ended, byPod: map[types.NamespacedName]*job{}, used: map[string]time.Duration{}}
}

// busy reports whether a job of the Pod is under way.
func (j *jobs) busy(pod types.NamespacedName) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.byPod[pod]
	return known != nil && !known.ended
}

// start begins a job; do carries it out.
func (j *jobs) start(pod types.NamespacedName, what job, do func(context.Context) error) {
	j.mu.Lock()
	j.byPod[pod] = &what
	j.mu.Unlock()
	go func() {
		begun := time.Now()
		err := do(j.life)
		if j.life.Err() != nil {
			return // the process ends: the next one goes on from what is stored
		}
		j.mu.Lock()
		what.ended, what.err, what.used = true, err, time.Since(begun)
		j.mu.Unlock()
		j.ended(pod)
	}()
}

// apply writes what the last job of a Pod came to into the status, and reports whether there was one. It may be done again until forget is called.
func (j *jobs) apply(pod types.NamespacedName, s *v1beta1.ContainerRecreateRequestStatus, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.byPod[pod]
	if known == nil || !known.ended {
		return false
	}
	for i := range s.ContainerRecreateStates {
		state := &s.ContainerRecreateStates[i]
		if state.ContainerID != known.containerID || state.Phase != v1beta1.ContainerRecreateRequestRecreating {
			continue
		}
		switch {
		case cri.IsAway(known.err):
			// Nothing was asked of the container: it is tried again.
		case known.stage == hook:
			at := metav1.NewTime(now).Rfc3339Copy()
			state.PreStopTime = &at
			j.used[known.containerID] = known.used
		case known.err != nil:
			state.Phase, state.Message = v1beta1.ContainerRecreateRequestFailed, "kill container error: "+known.err.Error()
		}
	}
	return true
}

// forget drops the last job of a Pod.
func (j *jobs) forget(pod types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.byPod[pod]; known != nil && known.stage == stop {
		delete(j.used, known.containerID)
	}
	delete(j.byPod, pod)
}

// drop forgets what is known of a Pod for which there are no requests any more, unless a job is under way.
func (j *jobs) drop(pod types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.byPod[pod]; known != nil && known.ended {
		delete(j.used, known.containerID)
		delete(j.byPod, pod)
	}
}

func (j *jobs) usedBy(containerID string) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.used[containerID]
}

// target is a container to stop.
type target struct {
	recreate.Kill
	request *v1beta1.ContainerRecreateRequest
	pod     *corev1.Pod
	runtime *cri.Runtime
	// resumed says that a daemon before this one, or a try before this one, has begun.
	resumed bool
}

func (t target) grace() time.Duration {
	if s := t.request.Spec.Strategy; s != nil && s.TerminationGracePeriodSeconds != nil {
		return time.Duration(*s.TerminationGracePeriodSeconds) * time.Second
	}
	return prestop.Grace(t.pod)
}

func (t target) container() v1beta1.ContainerRecreateRequestContainer {
	for _, c := range t.request.Spec.Containers {
		if c.Name == t.Name {
			return c
		}
	}
	return v1beta1.ContainerRecreateRequestContainer{Name: t.Name}
}

// begin runs the hook of a container, if it has one that has not run, or else stops it.
func (w *worker) begin(ctx context.Context, t target) {
	logger := log.FromContext(ctx).WithValues("request", t.request.Name, "container", t.Name, "containerID", t.ID)
	_, id, err := cri.SplitID(t.ID)
	if err != nil {
		logger.Error(err, "The container can't be stopped")
		return
	}
	if !t.resumed {
		w.Events.Eventf(prestop.About(t.pod, t.Name), corev1.EventTypeNormal, "Killing", "Stopping container %s by ContainerRecreateRequest %s", t.Name, t.request.Name)
	}
	key := client.ObjectKeyFromObject(t.pod)
	grace := t.grace()
	if asked := t.container(); asked.PreStop != nil && !t.SkipPreStop && grace > 0 {
		logger.Info("Running the hook of a container that is to be stopped", "limit", grace)
		h := prestop.Hook{
			Runtime: t.runtime, ID: id, Container: t.Name, Pod: t.pod, Asked: asked.PreStop, Ports: asked.Ports, Grace: grace, Events: w.Events,
		}
		w.jobs.start(key, job{stage: hook, containerID: t.ID}, h.Run)
		return
	}
	rest := prestop.Rest(grace, w.jobs.usedBy(t.ID))
	logger.Info("Stopping a container", "grace", rest)
	w.jobs.start(key, job{stage: stop, containerID: t.ID}, func(life context.Context) error {
		return t.runtime.StopContainer(life, id, rest)
	})
}
