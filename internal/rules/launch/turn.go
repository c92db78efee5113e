package launch

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// notCreated is how a kubelet says that it can't create a container, such as for want of a key.
const notCreated = "CreateContainerConfigError"

// Turn is how far the containers of a Pod may start.
type Turn struct {
	// Priority is the lowest that may start: the key of it, and those of all higher ones, must be in the barrier.
	Priority int32
	// Last means that no container has a lower priority.
	Last bool
	// Keys are those that must be in the barrier, from the highest priority to the lowest.
	Keys []string
}

// Next returns how far the containers of a Pod may start by what they are doing; nothing when none of them waits for a turn. With sidecar 1
// and main 0, Priority is 1 until sidecar is ready, and 0 then. A container that has done its work and will not run again lets the next
// ones start, as a ready one does.
func Next(p *corev1.Pod) (Turn, bool) {
	waiting := priorities(p, func(c *corev1.Container) bool { return !isUp(p, c.Name) })
	if len(waiting) == 0 {
		return Final(p)
	}
	return At(p, waiting[0])
}

// Final returns the turn in which all containers of a Pod may start; nothing when none of them waits for a turn.
func Final(p *corev1.Pod) (Turn, bool) {
	all := priorities(p, func(*corev1.Container) bool { return true })
	if len(all) == 0 {
		return Turn{}, false
	}
	return At(p, all[len(all)-1])
}

// At returns the turn in which the containers of a Pod down to a priority may start; nothing when none of them waits for a turn.
func At(p *corev1.Pod, priority int32) (Turn, bool) {
	all := priorities(p, func(*corev1.Container) bool { return true })
	if len(all) == 0 {
		return Turn{}, false
	}
	turn := Turn{Priority: priority, Last: priority <= all[len(all)-1]}
	for _, higher := range all {
		if higher >= priority {
			turn.Keys = append(turn.Keys, Key(higher))
		}
	}
	return turn, true
}

// priorities returns those of the chosen containers that have one, without repetition, the highest first.
func priorities(p *corev1.Pod, chosen func(*corev1.Container) bool) []int32 {
	var all []int32
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if priority, ok := Priority(c); ok && chosen(c) {
			all = append(all, priority)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.Reverse(all)
	return all
}

func isUp(p *corev1.Pod, name string) bool {
	status := pod.ContainerStatus(p, name)
	if status == nil {
		return false
	}
	ended := status.State.Terminated
	return status.Ready || ended != nil && ended.ExitCode == 0 && p.Spec.RestartPolicy != corev1.RestartPolicyAlways
}

// Stuck reports whether a kubelet has tried in vain to start a container whose turn it is: it will only try again after some seconds, or
// when the Pod changes.
func Stuck(p *corev1.Pod, turn Turn) bool {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		priority, ok := Priority(c)
		if !ok || priority < turn.Priority {
			continue
		}
		status := pod.ContainerStatus(p, c.Name)
		if status != nil && status.State.Waiting != nil && status.State.Waiting.Reason == notCreated {
			return true
		}
	}
	return false
}
