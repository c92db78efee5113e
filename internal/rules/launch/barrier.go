package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// barrierSuffix ends the name of the ConfigMap that holds the containers of a Pod back.
//
// Wire: it is in the environment of containers.
const barrierSuffix = "-barrier"

// keyPrefix begins the keys of a barrier; the priority follows.
const keyPrefix = "p_"

// maxName is the length of the longest name of a ConfigMap.
const maxName = 253

// BarrierName returns the name of the barrier of a Pod.
func BarrierName(podName string) (string, error) {
	name := podName + barrierSuffix
	if len(name) > maxName {
		return "", fmt.Errorf("the Pod's name is too long to start its containers in order: its ConfigMap would be %s, which has %d characters; %d are allowed", name, len(name), maxName)
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

// Hold makes each container of the Pod wait for the key of its priority in a barrier. With no priorities none waits, and what was held
// before, as in a Pod that is written from another one, no longer is.
func Hold(p *corev1.Pod, barrier string, priorities []int32) {
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
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: barrier}, Key: Key(priorities[i])},
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

// IsHeld reports whether any container of the Pod has to wait for its turn, or had to.
func IsHeld(p *corev1.Pod) bool {
	for i := range p.Spec.Containers {
		if _, ok := Priority(&p.Spec.Containers[i]); ok {
			return true
		}
	}
	return false
}

// HasBarrier reports whether a container of the Pod brings a variable along that only Hold should write.
func HasBarrier(p *corev1.Pod) bool {
	for i := range p.Spec.Containers {
		if slices.ContainsFunc(p.Spec.Containers[i].Env, func(env corev1.EnvVar) bool { return env.Name == keys.ContainerBarrierEnv }) {
			return true
		}
	}
	return false
}
