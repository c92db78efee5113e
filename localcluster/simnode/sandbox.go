package simnode

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Sandbox is what a node remembers of one Pod, apart from what the API says.
type Sandbox struct {
	// IP is the Pod's address; it is kept as long as the Pod is.
	IP string
	// Admitted is when the Pod came to the node, Up when its sandbox is ready.
	Admitted, Up time.Time
	// Containers are those that were begun, of every kind.
	Containers []Container
	// StopBy is when the containers of a deleted Pod will have stopped; zero while it is not deleted.
	StopBy time.Time
	// Stopped is true when a deleted Pod has no running container left.
	Stopped bool
	// Phase is the Pod's phase.
	Phase corev1.PodPhase
	// Killed is the last value of AnnotationKill that was obeyed.
	Killed string
	// Resize is what became of the last change of resources.
	Resize resizeState
}

// activity is what a container does.
type activity string

const (
	waiting activity = "waiting" // for its start
	running activity = "running"
	exited  activity = "exited" // for good, or until its restart
)

// Container is one container of a Pod.
type Container struct {
	Name string
	// Image is the reference that the container runs, or last tried to.
	Image string
	Does  activity
	// Reason and Message say why a container waits.
	Reason, Message string
	// Since is when it began what it does.
	Since time.Time
	// Next is when it goes on by itself: is started, restarted, or exits. Zero: it does not.
	Next time.Time
	// ReadyAt is when a running container becomes ready. Zero: it does not.
	ReadyAt time.Time
	// Code is what it exits or exited with.
	Code int32
	// RanImage is the image of its present or last run, "" if it never ran.
	RanImage string
	// Last is how its last run ended, Before how the one before that did.
	Last, Before *corev1.ContainerStateTerminated
	// Restarts counts the starts but the first; Crashes those in a row that ended by themselves.
	Restarts int32
	Crashes  int
	// ID is that of its present or last run.
	ID string
	// Allocated are the resources that the node has granted, Actual those in effect.
	Allocated, Actual corev1.ResourceRequirements
}

// clone returns a Sandbox that shares nothing that Advance changes.
func (s Sandbox) clone() Sandbox {
	s.Containers = slices.Clone(s.Containers)
	return s
}

// container finds a container by name; nil if it was not begun.
func (s *Sandbox) container(name string) *Container {
	for i := range s.Containers {
		if s.Containers[i].Name == name {
			return &s.Containers[i]
		}
	}
	return nil
}

// begin returns the container, which waits from now on if it is new.
func (s *Sandbox) begin(spec *corev1.Container, now time.Time) *Container {
	if c := s.container(spec.Name); c != nil {
		return c
	}
	s.Containers = append(s.Containers, Container{
		Name: spec.Name, Image: spec.Image, Does: waiting, Reason: reasonCreating, Since: now, Next: now,
		Allocated: spec.Resources, Actual: spec.Resources,
	})
	return &s.Containers[len(s.Containers)-1]
}

// ready tells whether a container counts as ready at a moment.
func (c *Container) ready(now time.Time) bool {
	return c != nil && c.Does == running && !c.ReadyAt.IsZero() && !now.Before(c.ReadyAt)
}

// ran tells whether a container ever ran.
func (c *Container) ran() bool { return c.RanImage != "" }

// done tells whether a container has completed without error.
func (c *Container) done() bool {
	return c != nil && c.Does == exited && c.Code == 0 && c.Next.IsZero()
}
