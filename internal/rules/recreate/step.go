package recreate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// State is how far one container of a request has come.
type State = v1beta1.ContainerRecreateRequestContainerRecreateState

// Runtime is what the container runtime says of the newest container of one name.
type Runtime struct {
	// ID is its identity, as runtime://id.
	ID           string
	RestartCount int32
	Life         Life
	// StartedAt is when it started; zero before.
	StartedAt time.Time
	// ExitCode is that of a container that has exited.
	ExitCode int32
}

// Life is where a container stands between its creation and its end.
type Life int

const (
	// Created has not started yet.
	Created Life = iota
	// Running has started.
	Running
	// Exited has ended.
	Exited
)

// Sight is all that a step looks at.
type Sight struct {
	Request *v1beta1.ContainerRecreateRequest
	// Runtime holds the newest container of each name that is on the node.
	Runtime map[string]Runtime
	// Pod is the Pod as the API server knows it; nil when it is not known.
	Pod *corev1.Pod
	Now time.Time
}

// Step is what a request asks the daemon to do now. States have to be stored, if they differ from those of the request, before anything is stopped.
type Step struct {
	States []State
	// Kill is the container to stop now; nil for none.
	Kill *Kill
	// Complete says that the request has come to its end.
	Complete bool
	// Wait is the time until the answer can change without an event; zero for never.
	Wait time.Duration
}

// Kill is a container to be stopped.
type Kill struct {
	Name string
	// ID is its identity, as runtime://id.
	ID string
	// SkipPreStop says that the hook has run already.
	SkipPreStop bool
}

// Next decides the next step of a request under way. At most one container is stopped in a step, in the order of the request.
func Next(s Sight) Step {
	out := Step{}
	for _, c := range s.Request.Spec.Containers {
		state, wait := s.state(c)
		out.States = append(out.States, state)
		if wait > 0 && (out.Wait == 0 || wait < out.Wait) {
			out.Wait = wait
		}
	}
	strategy := v1beta1.ContainerRecreateRequestStrategy{}
	if s.Request.Spec.Strategy != nil {
		strategy = *s.Request.Spec.Strategy
	}
	final := 0
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
				if now := s.Runtime[state.Name]; now.Life == Exited {
					state.ContainerID = now.ID
				}
			}
			if strategy.OrderedRecreate {
				return out
			}
		default:
			now, onNode := s.Runtime[state.Name]
			if !onNode {
				return out
			}
			state.Phase, state.IsKilled, state.ContainerID, state.PreStopTime, state.Message = v1beta1.ContainerRecreateRequestRecreating, true, now.ID, nil, ""
			out.Kill = &Kill{Name: state.Name, ID: now.ID}
			return out
		}
	}
	out.Complete = final == len(out.States)
	return out
}

// isBeingKilled reports whether the container that a state says is stopped has not ended.
func (s Sight) isBeingKilled(state State) bool {
	now, onNode := s.Runtime[state.Name]
	return state.IsKilled && onNode && now.Life != Exited && now.ID == state.ContainerID
}

// state returns how far a container has come, and the time until it has come further if nothing happens.
func (s Sight) state(c v1beta1.ContainerRecreateRequestContainer) (State, time.Duration) {
	state := State{Name: c.Name, Phase: v1beta1.ContainerRecreateRequestPending}
	if i := slices.IndexFunc(s.Request.Status.ContainerRecreateStates, func(old State) bool { return old.Name == c.Name }); i >= 0 {
		state = s.Request.Status.ContainerRecreateStates[i]
	}
	if isFinal(state.Phase) {
		return state, 0
	}
	state.Message = ""
	now, onNode := s.Runtime[c.Name]
	switch {
	case !onNode && state.IsKilled:
		// Between two lives.
		state.Phase = v1beta1.ContainerRecreateRequestRecreating
	case !onNode:
		state.Phase, state.Message = v1beta1.ContainerRecreateRequestPending, "not found container on Node"
	case now.Life == Exited:
		s.exited(&state, now)
	case s.isForced() && !state.IsKilled:
		state.Phase = v1beta1.ContainerRecreateRequestPending
	case s.isBeingKilled(state):
		state.Phase = v1beta1.ContainerRecreateRequestRecreating
	case s.isAnew(c, state, now):
		state.Phase = v1beta1.ContainerRecreateRequestRecreating
		return s.ripen(state, now)
	default:
		state.Phase = v1beta1.ContainerRecreateRequestPending
	}
	return state, 0
}

func (s Sight) isForced() bool {
	return s.Request.Spec.Strategy != nil && s.Request.Spec.Strategy.ForceRecreate
}

// isAnew reports whether the container is the successor of the one that was to be stopped.
func (s Sight) isAnew(c v1beta1.ContainerRecreateRequestContainer, state State, now Runtime) bool {
	if state.IsKilled && state.ContainerID != "" {
		return now.ID != state.ContainerID
	}
	return c.StatusContext != nil && (now.ID != c.StatusContext.ContainerID || now.RestartCount > c.StatusContext.RestartCount)
}

// exited judges a container that has ended: the kubelet starts it anew, or never.
func (s Sight) exited(state *State, now Runtime) {
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

// restarts reports whether the kubelet starts a container anew that has ended with this code.
func restarts(p *corev1.Pod, name string, code int32) bool {
	policy := p.Spec.RestartPolicy
	if c := pod.LastingContainer(p, name); c != nil && c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
		if len(c.RestartPolicyRules) > 0 {
			// What the rules make of it shows when they have: it is not foretold.
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

// ripen judges a container that runs anew: it counts once it is ready and has run for more than minStartedSeconds.
func (s Sight) ripen(state State, now Runtime) (State, time.Duration) {
	if now.Life != Running || !s.isReady(state.Name, now.ID) {
		return state, 0
	}
	var least time.Duration
	if s.Request.Spec.Strategy != nil {
		least = time.Duration(s.Request.Spec.Strategy.MinStartedSeconds) * time.Second
	}
	if missing := now.StartedAt.Add(least).Sub(s.Now); missing >= 0 && least > 0 {
		return state, missing + time.Millisecond
	}
	state.Phase = v1beta1.ContainerRecreateRequestSucceeded
	return state, 0
}

// isReady reports whether the container is ready, by the Pod's status or else by what the manager has copied from it.
func (s Sight) isReady(name, id string) bool {
	if s.Pod != nil {
		if status := pod.LastingStatus(s.Pod, name); status != nil && status.ContainerID == id {
			return status.Ready
		}
	}
	return slices.ContainsFunc(s.Request.Status.ContainerStatusSnapshot, func(c v1beta1.ContainerRecreateRequestSyncContainerStatus) bool {
		return c.Name == name && c.ContainerID == id && c.Ready
	})
}
