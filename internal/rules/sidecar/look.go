package sidecar

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// look is a Pod with what it notes of a SidecarSet, read once.
type look struct {
	pod     *corev1.Pod
	set     *v1beta1.SidecarSet
	state   State
	begun   bool
	working map[string]string
}

func (t Target) look(p *corev1.Pod) look {
	l := look{pod: p, set: t.Set}
	if states, err := StatesIn(p); err == nil {
		l.state, l.begun = states[t.Set.Name]
	}
	l.working, _ = WorkingIn(p) // IsHeldBy has read it
	return l
}

// containers returns the names of all containers that are sidecars of the set.
func (l look) containers() []string {
	var names []string
	for i := range l.set.Spec.Containers {
		names = append(names, containersOf(&l.set.Spec.Containers[i])...)
	}
	for i := range l.set.Spec.InitContainers {
		if c := &l.set.Spec.InitContainers[i]; IsNative(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// unsettled says which of the containers does not run what it should yet; empty where all do. Containers that were never updated do.
func (l look) unsettled(names []string) string {
	switch {
	case len(l.pod.Status.ContainerStatuses) != len(l.pod.Spec.Containers):
		return "its containers have not all started"
	case !l.begun:
		return ""
	case inplace.IsUnseen(l.pod):
		return "the kubelet has not seen the change yet"
	}
	for _, name := range names {
		if last, changed := l.state.LastContainerStatuses[name]; changed {
			if verdict := inplace.ImageProgress(l.pod, name, last); !verdict.Done {
				return verdict.Why
			}
		}
	}
	return ""
}

// isServing reports whether a container is ready and runs what it should.
func (l look) isServing(name string) bool {
	return l.isReady(name) && l.unsettled([]string{name}) == ""
}

func (l look) isReady(name string) bool {
	status := pod.LastingStatus(l.pod, name)
	return status != nil && status.Ready
}

// busy says why the Pod can't take another update yet; empty where it can. One whose sidecar is not ready can: the next image may be what mends it.
// For the same reason a hot upgrade need not be finished in a Pod whose containers are not ready, which it would have to be for that.
func (l look) busy() string {
	for _, name := range l.containers() {
		if why := l.unsettled([]string{name}); why != "" && l.begun && l.isReady(name) {
			return why
		}
	}
	var idle []string
	for _, h := range l.hot() {
		idle = append(idle, h.idle.Name)
	}
	for _, h := range l.hot() {
		if !h.isIdle() && l.othersReady(idle) {
			return "container " + h.idle.Name + " has to go idle first"
		}
	}
	return ""
}

// hot is a hot-upgrade sidecar in a Pod.
type hot struct {
	sidecar       *v1beta1.SidecarContainer
	working, idle *corev1.Container
}

// isIdle reports whether the container that does not work has the image of an idle one.
func (h hot) isIdle() bool { return h.idle.Image == h.sidecar.UpgradeStrategy.HotUpgradeEmptyImage }

// hot returns the hot-upgrade sidecars of the Pod.
func (l look) hot() []hot {
	var out []hot
	for i := range l.set.Spec.Containers {
		c := &l.set.Spec.Containers[i]
		if !IsHot(c) {
			continue
		}
		first, second := Twins(c.Name)
		if l.working[c.Name] == second {
			first, second = second, first
		}
		out = append(out, hot{sidecar: c, working: pod.Container(l.pod, first), idle: pod.Container(l.pod, second)})
	}
	return out
}

// resets returns the hot-upgrade sidecars whose idle container is to get the image of an idle one: the working one has taken over by then.
func (l look) resets() []string {
	var due, idle []string
	for _, h := range l.hot() {
		idle = append(idle, h.idle.Name)
		if !h.isIdle() {
			due = append(due, h.sidecar.Name)
		}
	}
	if len(due) == 0 {
		return nil
	}
	rest := slices.DeleteFunc(l.containers(), func(name string) bool { return slices.Contains(idle, name) })
	if l.unsettled(rest) != "" || !pod.IsReady(l.pod) && !l.othersReady(idle) {
		return nil
	}
	return due
}

// othersReady reports whether every container but these is ready.
func (l look) othersReady(idle []string) bool {
	for i := range l.pod.Spec.Containers {
		if name := l.pod.Spec.Containers[i].Name; !slices.Contains(idle, name) && !l.isReady(name) {
			return false
		}
	}
	return true
}
