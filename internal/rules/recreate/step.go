package recreate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Container is the newest container of one name in the container runtime.
type Container struct {
	// ID is of the form runtime://id.
	ID           string
	RestartCount int32
	State        ContainerState
	// StartedAt is zero before the container has started.
	StartedAt time.Time
	ExitCode  int32
}

// ContainerState is the state of a container in its runtime.
type ContainerState int

// A container is created, runs, and exits.
const (
	Created ContainerState = iota
	Running
	Exited
)

// Observed is the input of a step.
type Observed struct {
	Request *Request
	// Containers holds the newest container of each name that is on the node.
	Containers map[string]Container
	// Pod is nil when it is not known.
	Pod *corev1.Pod
	Now time.Time
}

// Step is what the daemon has to do now. States have to be stored, if they differ from those of the request, before anything is stopped.
type Step struct {
	States []State
	// Kill is the container to stop now; nil for none.
	Kill *Kill
	// Complete says that the request has ended.
	Complete bool
	// Wait is the time until the next step can differ without an event; zero for never.
	Wait time.Duration
}

// Kill is a container to be stopped.
type Kill struct {
	Name string
	// ID is of the form runtime://id.
	ID string
	// SkipPreStop says that the hook has run already.
	SkipPreStop bool
}

// Next returns the next step of a request that has not ended. At most one container is stopped in a step, in the order of the request.
func Next(s Observed) Step {
	var out Step
	for _, c := range s.Request.Spec.Containers {
		state, wait := s.state(c)
		out.States = append(out.States, state)
		if wait > 0 && (out.Wait == 0 || wait < out.Wait) {
			out.Wait = wait
		}
	}
	strategy, final := s.strategy(), 0
	for i := range out.States {
		state := &out.States[i]
		switch state.Phase {
		case v1beta1.ContainerRecreateRequestSucceeded:
			final++
		case v1beta1.ContainerRecreateRequestFailed:
			final++
			if strategy.FailurePolicy != v1beta1.ContainerRecreateRequestFailurePolicyIgnore {
				out.Complete = true
				return out
			}
		case v1beta1.ContainerRecreateRequestRecreating:
			if s.isBeingKilled(*state) {
				out.Kill = &Kill{Name: state.Name, ID: state.ContainerID, SkipPreStop: state.PreStopTime != nil}
				return out
			}
			if !state.IsKilled {
				state.IsKilled = true
				if now := s.Containers[state.Name]; now.State == Exited {
					state.ContainerID = now.ID
				}
			}
			if strategy.OrderedRecreate {
				return out
			}
		default:
			now, onNode := s.Containers[state.Name]
			if !onNode {
				return out
			}
			*state = State{Name: state.Name, Phase: v1beta1.ContainerRecreateRequestRecreating, IsKilled: true, ContainerID: now.ID}
			out.Kill = &Kill{Name: state.Name, ID: now.ID}
			return out
		}
	}
	out.Complete = final == len(out.States)
	return out
}

// isBeingKilled reports whether the container that the request stops has not ended yet.
func (s Observed) isBeingKilled(state State) bool {
	now, onNode := s.Containers[state.Name]
	return state.IsKilled && onNode && now.State != Exited && now.ID == state.ContainerID
}

// state returns how far a container has come, and the time until that changes without an event; zero for never.
func (s Observed) state(c v1beta1.ContainerRecreateRequestContainer) (State, time.Duration) {
	state := State{Name: c.Name, Phase: v1beta1.ContainerRecreateRequestPending}
	if i := slices.IndexFunc(s.Request.Status.ContainerRecreateStates, func(old State) bool { return old.Name == c.Name }); i >= 0 {
		state = s.Request.Status.ContainerRecreateStates[i]
	}
	if isFinal(state.Phase) {
		return state, 0
	}
	state.Message = ""
	now, onNode := s.Containers[c.Name]
	switch {
	case !onNode && state.IsKilled:
		// The old container is removed, and the new one not created yet.
		state.Phase = v1beta1.ContainerRecreateRequestRecreating
	case !onNode:
		state.Phase, state.Message = v1beta1.ContainerRecreateRequestPending, "not found container on Node"
	case now.State == Exited:
		s.exited(&state, now)
	case s.strategy().ForceRecreate && !state.IsKilled:
		state.Phase = v1beta1.ContainerRecreateRequestPending
	case s.isBeingKilled(state):
		state.Phase = v1beta1.ContainerRecreateRequestRecreating
	case s.isRestarted(c, state, now):
		state.Phase = v1beta1.ContainerRecreateRequestRecreating
		return s.restarted(state, now)
	default:
		state.Phase = v1beta1.ContainerRecreateRequestPending
	}
	return state, 0
}

func (s Observed) strategy() v1beta1.ContainerRecreateRequestStrategy {
	return ptr.Deref(s.Request.Spec.Strategy, v1beta1.ContainerRecreateRequestStrategy{})
}

// isRestarted reports whether the container is the successor of the one to stop.
func (s Observed) isRestarted(c v1beta1.ContainerRecreateRequestContainer, state State, now Container) bool {
	if state.IsKilled && state.ContainerID != "" {
		return now.ID != state.ContainerID
	}
	return c.StatusContext != nil && (now.ID != c.StatusContext.ContainerID || now.RestartCount > c.StatusContext.RestartCount)
}

// exited evaluates a container that has exited: the kubelet restarts it, or it has failed.
func (s Observed) exited(state *State, now Container) {
	state.Phase = v1beta1.ContainerRecreateRequestRecreating
	if s.Pod == nil {
		return
	}
	if state.IsKilled && !restarts(s.Pod, state.Name, now.ExitCode) {
		state.Phase, state.Message = v1beta1.ContainerRecreateRequestFailed, "container will not be restarted because of restartPolicy"
		return
	}
	if status := pod.LastingStatus(s.Pod, state.Name); status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "" {
		state.Message = fmt.Sprintf("waits to be restarted: %s", status.State.Waiting.Reason)
	}
}

// restarts reports whether the kubelet restarts a container that has exited with this code.
func restarts(p *corev1.Pod, name string, code int32) bool {
	policy := p.Spec.RestartPolicy
	if c := pod.Lasting(p, name); c != nil && c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
		if len(c.RestartPolicyRules) > 0 {
			// The kubelet evaluates the rules; their result shows in the container.
			return true
		}
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

// restarted evaluates a restarted container: it has succeeded once it is ready and has run for more than minStartedSeconds.
func (s Observed) restarted(state State, now Container) (State, time.Duration) {
	if now.State != Running || !s.isReady(state.Name, now.ID) {
		return state, 0
	}
	least := time.Duration(s.strategy().MinStartedSeconds) * time.Second
	if missing := now.StartedAt.Add(least).Sub(s.Now); missing >= 0 && least > 0 {
		return state, missing + time.Millisecond
	}
	state.Phase = v1beta1.ContainerRecreateRequestSucceeded
	return state, 0
}

// isReady reports whether the container is ready, by the Pod's status or else by the manager's copy of it.
func (s Observed) isReady(name, id string) bool {
	if s.Pod != nil {
		if status := pod.LastingStatus(s.Pod, name); status != nil && status.ContainerID == id {
			return status.Ready
		}
	}
	return slices.ContainsFunc(s.Request.Status.ContainerStatusSnapshot, func(c ContainerStatus) bool {
		return c.Name == name && c.ContainerID == id && c.Ready
	})
}

// Snapshot returns the Pod's status of the containers that have restarted: for clients of the request, and for daemons that do not watch
// Pods. A container that does not run now keeps the status that it had in the request.
//
// A container has restarted when it has another ID or more restarts than when the request was created. A request that has neither, because
// an older version of Kruise admitted it, compares the start of the container with its own creation; clocks of nodes differ, so this is the
// last resort.
func Snapshot(r *Request, p *corev1.Pod) []v1beta1.ContainerRecreateRequestSyncContainerStatus {
	var out []ContainerStatus
	for _, c := range r.Spec.Containers {
		s, before := pod.LastingStatus(p, c.Name), c.StatusContext
		if s != nil && s.State.Running != nil &&
			(before != nil && (s.ContainerID != before.ContainerID || s.RestartCount > before.RestartCount) ||
				!s.State.Running.StartedAt.Before(&r.CreationTimestamp)) {
			out = append(out, ContainerStatus{Name: c.Name, Ready: s.Ready, RestartCount: s.RestartCount, ContainerID: s.ContainerID})
			continue
		}
		known := r.Status.ContainerStatusSnapshot
		if i := slices.IndexFunc(known, func(s ContainerStatus) bool { return s.Name == c.Name }); i >= 0 {
			out = append(out, known[i])
		}
	}
	return out
}
