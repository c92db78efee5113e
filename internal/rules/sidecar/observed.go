package sidecar

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// observed is a Pod with the annotations that a SidecarSet has written to it, parsed once.
type observed struct {
	pod     *corev1.Pod
	set     *v1beta1.SidecarSet
	state   State
	begun   bool
	working map[string]string
}

func (t Target) observed(p *corev1.Pod) observed {
	o := observed{pod: p, set: t.Set}
	if states, err := StatesIn(p); err == nil {
		o.state, o.begun = states[t.Set.Name]
	}
	o.working, _ = WorkingIn(p) // IsHeldBy has read it
	return o
}

// containers returns the names of all containers that are sidecars of the set.
func (o observed) containers() []string {
	var names []string
	for i := range o.set.Spec.Containers {
		names = append(names, containersOf(&o.set.Spec.Containers[i])...)
	}
	for i := range o.set.Spec.InitContainers {
		if c := &o.set.Spec.InitContainers[i]; IsNative(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// unsettled says which of the containers does not run what it should yet; empty where all do. Containers that were never updated do.
func (o observed) unsettled(names []string) string {
	switch {
	case len(o.pod.Status.ContainerStatuses) != len(o.pod.Spec.Containers):
		return "its containers have not all started"
	case !o.begun:
		return ""
	case inplace.IsUnseen(o.pod):
		return "the kubelet has not seen the change yet"
	}
	for _, name := range names {
		if last, changed := o.state.LastContainerStatuses[name]; changed {
			if verdict := inplace.ImageProgress(o.pod, name, last); !verdict.Done {
				return verdict.Why
			}
		}
	}
	return ""
}

// isServing reports whether a container is ready and runs what it should.
func (o observed) isServing(name string) bool {
	return o.isReady(name) && o.unsettled([]string{name}) == ""
}

func (o observed) isReady(name string) bool {
	status := pod.LastingStatus(o.pod, name)
	return status != nil && status.Ready
}

// busy says why the Pod can't take another update yet; empty where it can. One whose sidecar is not ready can: the next image may be what
// mends it. For the same reason a hot upgrade need not be finished in a Pod whose containers are not ready, which it would have to be for
// that.
func (o observed) busy() string {
	for _, name := range o.containers() {
		if why := o.unsettled([]string{name}); why != "" && o.begun && o.isReady(name) {
			return why
		}
	}
	var idle []string
	for _, h := range o.hot() {
		idle = append(idle, h.idle.Name)
	}
	for _, h := range o.hot() {
		if !h.isIdle() && o.othersReady(idle) {
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
func (o observed) hot() []hot {
	var out []hot
	for i := range o.set.Spec.Containers {
		c := &o.set.Spec.Containers[i]
		if !IsHot(c) {
			continue
		}
		first, second := Twins(c.Name)
		if o.working[c.Name] == second {
			first, second = second, first
		}
		out = append(out, hot{sidecar: c, working: pod.Container(o.pod, first), idle: pod.Container(o.pod, second)})
	}
	return out
}

// resets returns the hot-upgrade sidecars whose idle container is to get the image of an idle one: the working one has taken over by then.
func (o observed) resets() []string {
	var due, idle []string
	for _, h := range o.hot() {
		idle = append(idle, h.idle.Name)
		if !h.isIdle() {
			due = append(due, h.sidecar.Name)
		}
	}
	if len(due) == 0 {
		return nil
	}
	rest := slices.DeleteFunc(o.containers(), func(name string) bool { return slices.Contains(idle, name) })
	if o.unsettled(rest) != "" || !pod.IsReady(o.pod) && !o.othersReady(idle) {
		return nil
	}
	return due
}

// othersReady reports whether every container but these is ready.
func (o observed) othersReady(idle []string) bool {
	for i := range o.pod.Spec.Containers {
		if name := o.pod.Spec.Containers[i].Name; !slices.Contains(idle, name) && !o.isReady(name) {
			return false
		}
	}
	return true
}
