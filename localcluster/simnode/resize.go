package simnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// resizeState is what became of a change of resources.
type resizeState struct {
	// Pending is why the node does not grant it, "" if it does: Infeasible or Deferred.
	Pending, Message string
	// Due is when a granted change is in effect; zero when none is on its way.
	Due time.Time
}

// resize follows changes of spec.containers[].resources: the node grants them, and after a while they are in effect,
// without a restart unless the container's resizePolicy asks for one.
func (st *step) resize() {
	if !st.wantsResize() && st.box.Resize.Due.IsZero() {
		st.box.Resize = resizeState{}
		return
	}
	if st.wantsResize() {
		if reason := st.rules.failResize; reason != "" {
			st.box.Resize.Pending = reason
			st.box.Resize.Message = fmt.Sprintf("simulated: %s says so", AnnotationFailResize)
		} else {
			st.grant()
		}
	}
	if st.due(st.box.Resize.Due) {
		st.actuate()
	}
}

// resizable visits the containers whose resources may change: the main ones and the sidecars.
func (st *step) resizable(visit func(*Container, *corev1.Container)) {
	spec := &st.Pod.Spec
	for i := range spec.InitContainers {
		if podutil.IsRestartableInitContainer(&spec.InitContainers[i]) {
			visit(st.box.container(spec.InitContainers[i].Name), &spec.InitContainers[i])
		}
	}
	for i := range spec.Containers {
		visit(st.box.container(spec.Containers[i].Name), &spec.Containers[i])
	}
}

func (st *step) wantsResize() bool {
	var wants bool
	st.resizable(func(c *Container, spec *corev1.Container) {
		wants = wants || c != nil && !apiequality.Semantic.DeepEqual(c.Allocated, spec.Resources)
	})
	return wants
}

func (st *step) grant() {
	st.resizable(func(c *Container, spec *corev1.Container) {
		if c != nil {
			c.Allocated = spec.Resources
		}
	})
	st.box.Resize = resizeState{Due: st.in(st.rules.Resize)}
}

// actuate puts what was granted into effect.
func (st *step) actuate() {
	st.resizable(func(c *Container, spec *corev1.Container) {
		if c == nil || apiequality.Semantic.DeepEqual(c.Allocated, c.Actual) {
			return
		}
		if c.Does == running && needsRestart(spec, c.Actual, c.Allocated) {
			c.exit(st.Now, 0)
			c.Next = st.in(st.rules.Restart)
			st.due(c.Next)
		}
		c.Actual = c.Allocated
	})
	st.box.Resize = resizeState{}
}

// needsRestart tells whether the container's resizePolicy asks for a restart when these resources change.
func needsRestart(spec *corev1.Container, from, to corev1.ResourceRequirements) bool {
	for _, policy := range spec.ResizePolicy {
		if policy.RestartPolicy != corev1.RestartContainer {
			continue
		}
		for _, lists := range [][2]corev1.ResourceList{{from.Requests, to.Requests}, {from.Limits, to.Limits}} {
			before, after := lists[0][policy.ResourceName], lists[1][policy.ResourceName]
			if before.Cmp(after) != 0 {
				return true
			}
		}
	}
	return false
}
