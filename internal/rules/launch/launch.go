// Package launch holds the containers of a new Pod back until it is their turn.
//
// A container of a lower priority starts only when all containers of higher ones are ready. Each container gets an environment variable
// that refers to a key of a ConfigMap, the barrier, and a kubelet can't create the container before the key is there. With the priorities
// sidecar 10 and main 0, the barrier has first the key p_10, and, once sidecar is ready, also p_0. Keys are never taken away: a container
// that restarts needs its own again.
package launch

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Priorities returns the launch priority of each container of the Pod, in their order; nothing when no order is asked for, which includes
// that all priorities are equal. The annotation goes before the variables: the containers [a, b, c] get 0, -1 and -2 by it. Init containers
// run one after the other anyway.
func Priorities(p *corev1.Pod) ([]int32, error) {
	containers := p.Spec.Containers
	if len(containers) < 2 {
		return nil, nil
	}
	priorities := make([]int32, len(containers))
	if p.Annotations[keys.ContainerLaunchPriority] == keys.ContainerLaunchOrdered {
		for i := range containers {
			priorities[i] = -int32(i)
		}
		return priorities, nil
	}
	for i := range containers {
		var err error
		if priorities[i], err = asked(&containers[i]); err != nil {
			return nil, err
		}
	}
	if slices.Min(priorities) == slices.Max(priorities) {
		return nil, nil
	}
	return priorities, nil
}

// asked returns the priority that the user gave to a container; the last one, as for any variable that is given twice.
func asked(c *corev1.Container) (int32, error) {
	var priority int32
	for _, env := range c.Env {
		if env.Name != keys.ContainerPriorityEnv {
			continue
		}
		value, err := strconv.ParseInt(env.Value, 10, 32)
		switch {
		case env.ValueFrom != nil:
			return 0, fmt.Errorf("container %s takes %s from elsewhere: write the number itself as its value",
				c.Name, keys.ContainerPriorityEnv)
		case err != nil || value == math.MinInt32:
			return 0, fmt.Errorf("container %s has %s=%q: write a whole number from %d to %d",
				c.Name, keys.ContainerPriorityEnv, env.Value, -math.MaxInt32, math.MaxInt32)
		}
		priority = int32(value)
	}
	return priority, nil
}

const (
	// barrierSuffix ends the name of the ConfigMap that the containers of a Pod wait for.
	//
	// Wire: it is in the environment of containers.
	barrierSuffix = "-barrier"
	// keyPrefix begins the keys of a barrier; the priority follows.
	keyPrefix = "p_"
	// maxName is the length of the longest name of a ConfigMap.
	maxName = 253
)

// BarrierName returns the name of the barrier of a Pod.
func BarrierName(podName string) (string, error) {
	name := podName + barrierSuffix
	if len(name) > maxName {
		return "", fmt.Errorf("the Pod's name is too long to start its containers in order: its ConfigMap would be %s, "+
			"which has %d characters; %d are allowed", name, len(name), maxName)
	}
	return name, nil
}

// Key returns the key of a barrier that lets containers of a priority start.
func Key(priority int32) string {
	return keyPrefix + strconv.Itoa(int(priority))
}

// priorityOf returns the priority that a key is for.
func priorityOf(key string) (int32, bool) {
	text, found := strings.CutPrefix(key, keyPrefix)
	priority, err := strconv.ParseInt(text, 10, 32)
	return int32(priority), found && err == nil
}

// SetBarrier makes each container of the Pod wait for the key of its priority in a barrier. With no priorities none waits, and what waited
// before, as in a Pod that is written from another one, no longer does.
func SetBarrier(p *corev1.Pod, barrier string, priorities []int32) {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		held := false
		c.Env = slices.DeleteFunc(c.Env, func(env corev1.EnvVar) bool {
			if env.Name != keys.ContainerBarrierEnv {
				return false
			}
			keep := !held && priorities != nil && isReference(env, barrier, Key(priorities[i]))
			held = held || keep
			return !keep
		})
		if priorities != nil && !held {
			c.Env = append(c.Env, corev1.EnvVar{Name: keys.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: barrier}, Key: Key(priorities[i]),
				},
			}})
		}
	}
}

func isReference(env corev1.EnvVar, barrier, key string) bool {
	ref := reference(env)
	return env.Value == "" && ref != nil && ref.Name == barrier && ref.Key == key && (ref.Optional == nil || !*ref.Optional)
}

func reference(env corev1.EnvVar) *corev1.ConfigMapKeySelector {
	if env.ValueFrom == nil {
		return nil
	}
	return env.ValueFrom.ConfigMapKeyRef
}

// Priority returns the priority in the key that a container waits for, and whether it waits for one.
func Priority(c *corev1.Container) (int32, bool) {
	for _, env := range c.Env {
		if ref := reference(env); env.Name == keys.ContainerBarrierEnv && ref != nil {
			if priority, ok := priorityOf(ref.Key); ok {
				return priority, true
			}
		}
	}
	return 0, false
}

// IsOrdered reports whether any container of the Pod has to wait for its turn, or had to.
func IsOrdered(p *corev1.Pod) bool {
	_, ordered := Final(p)
	return ordered
}

// HasBarrierEnv reports whether a container of the Pod brings a variable along that only SetBarrier should write.
func HasBarrierEnv(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(env corev1.EnvVar) bool { return env.Name == keys.ContainerBarrierEnv })
	})
}

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

// IsStuck reports whether a kubelet has tried in vain to start a container whose turn it is: it will only try again after some seconds, or
// when the Pod changes.
func IsStuck(p *corev1.Pod, turn Turn) bool {
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

// Opened returns the lowest priority whose key is in the barrier: by its annotation, so that its data need not be kept in memory, or, where
// other software has made it, by its data.
func Opened(barrier *corev1.ConfigMap) (int32, bool) {
	if priority, ok := priorityOf(barrier.Annotations[keys.ContainerLaunchPriorityCurrent]); ok {
		return priority, true
	}
	lowest, found := int32(0), false
	for key := range barrier.Data {
		if priority, ok := priorityOf(key); ok && (!found || priority < lowest) {
			lowest, found = priority, true
		}
	}
	return lowest, found
}

// Open puts the keys of a turn into a barrier. After the last turn nothing can change any more, and kubelets need not watch it.
func Open(barrier *corev1.ConfigMap, turn Turn) {
	metav1.SetMetaDataLabel(&barrier.ObjectMeta, keys.ContainerLaunchBarrier, "true")
	metav1.SetMetaDataAnnotation(&barrier.ObjectMeta, keys.ContainerLaunchPriorityCurrent, Key(turn.Priority))
	barrier.Data = maps.Clone(barrier.Data)
	if barrier.Data == nil {
		barrier.Data = map[string]string{}
	}
	for _, key := range turn.Keys {
		barrier.Data[key] = "true"
	}
	if turn.Last {
		barrier.Immutable = new(true)
	}
}

// NewBarrier returns the barrier of a Pod with the keys of a turn. It goes when the Pod does.
func NewBarrier(p *corev1.Pod, name string, turn Turn) *corev1.ConfigMap {
	owner := metav1.OwnerReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Name: p.Name, UID: p.UID}
	barrier := &corev1.ConfigMap{}
	barrier.Name, barrier.Namespace, barrier.OwnerReferences = name, p.Namespace, []metav1.OwnerReference{owner}
	Open(barrier, turn)
	return barrier
}

// Ownership says what a ConfigMap with the name of a Pod's barrier is.
type Ownership int

const (
	// Owned means that it is the Pod's barrier.
	Owned Ownership = iota
	// Outdated means that it is the barrier of an earlier Pod of the same name: with its keys everything would start at once.
	Outdated
	// Foreign means that it is something else, which this software must not change.
	Foreign
)

// OwnershipOf says whether the ConfigMap is the barrier of the Pod.
func OwnershipOf(barrier *corev1.ConfigMap, p *corev1.Pod) Ownership {
	isOwner := func(ref metav1.OwnerReference) bool { return ref.UID == p.UID }
	isOther := func(ref metav1.OwnerReference) bool { return ref.Kind != "Pod" || ref.Name != p.Name }
	switch owners := barrier.OwnerReferences; {
	case slices.ContainsFunc(owners, isOwner):
		return Owned
	case len(owners) == 0 || slices.ContainsFunc(owners, isOther):
		return Foreign
	default:
		return Outdated
	}
}
