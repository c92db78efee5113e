package simnode

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// life says what kind of container it is, which decides how it ends and whether it comes back.
type life struct{ init, sidecar, ephemeral bool }

// run brings one container to the present.
func (st *step) run(c *Container, spec *corev1.Container, kind life) {
	if c.Image != spec.Image && !kind.ephemeral {
		st.changeImage(c, spec)
	}
	switch c.Does {
	case waiting:
		if st.due(c.Next) {
			st.start(c, spec, kind)
		}
	case running:
		if !c.ReadyAt.IsZero() {
			st.due(c.ReadyAt) // being ready is worth a look, though nothing else happens then
		}
		if st.due(c.Next) {
			c.exit(st.Now, c.Code)
			st.afterExit(c, kind)
		}
	case exited:
		if st.due(c.Next) {
			st.start(c, spec, kind)
		}
	}
}

// changeImage takes note of a new image: a running container is ended for it, one that waits because of the old image
// tries the new one at once, one that is about to restart does so as planned, and one that has ended for good stays so.
func (st *step) changeImage(c *Container, spec *corev1.Container) {
	c.Image = spec.Image
	c.Crashes = 0 // back-off is counted per image
	switch {
	case c.Does == running:
		c.exit(st.Now, 0)
		c.Reason, c.Message = "", ""
		c.Next = st.in(st.rules.Restart)
	case c.Does == waiting || c.Reason == reasonCrashLoop:
		c.Next = st.Now
	}
}

// start tries to start a container: it runs then, or waits for a reason.
func (st *step) start(c *Container, spec *corev1.Container, kind life) {
	img := resolve(c.Image)
	switch {
	case img.failed != "":
		c.wait(st.Now, reasonBadName, img.failed)
		c.Next = time.Time{}
		return
	case img.says(tagFailPull):
		st.failPull(c)
		return
	}
	if st.Missing != nil {
		if what := st.Missing(st.Pod, spec); what != "" {
			c.wait(st.Now, reasonConfig, what)
			c.Next = st.in(configRetry)
			st.due(c.Next)
			return
		}
	}
	if c.ran() {
		c.Restarts++
	}
	c.Does, c.Since, c.RanImage = running, st.Now, c.Image
	c.Reason, c.Message = "", ""
	c.ID = "containerd://" + digest(string(st.Pod.UID), c.Name, c.Since.String())
	c.ReadyAt = st.readyAt(c, img)
	c.Next, c.Code = st.ends(c, img, kind)
	st.due(c.ReadyAt)
	st.due(c.Next)
	// Whatever was granted since the last start is in effect now.
	c.Actual = c.Allocated
}

// failPull goes the way of an image that cannot be pulled: an error, and then the pause before the next try, in which
// it stays, as nothing would change but a counter.
func (st *step) failPull(c *Container) {
	if c.Reason != reasonErrPull && c.Reason != reasonPullBackOff {
		c.wait(st.Now, reasonErrPull, "failed to pull and unpack image \""+resolve(c.Image).name+"\": not found")
		c.Next = st.in(pullRetry)
		st.due(c.Next)
		return
	}
	c.wait(st.Now, reasonPullBackOff, "Back-off pulling image \""+c.Image+"\": ErrImagePull: not found")
	c.Next = time.Time{}
}

func (c *Container) wait(now time.Time, reason, message string) {
	c.Does, c.Since, c.Reason, c.Message = waiting, now, reason, message
}

func (st *step) readyAt(c *Container, img image) time.Time {
	if img.says(tagNeverReady) {
		return time.Time{}
	}
	return st.in(st.rules.readyAfter(c.Name))
}

// ends says when a container that starts now will exit by itself, zero for never, and with which code.
func (st *step) ends(c *Container, img image, kind life) (time.Time, int32) {
	if img.says(tagCrash) {
		return st.in(crashAfter), 1
	}
	code := st.rules.codeOf(c.Name)
	lifetime, said := lookup(st.rules.runFor, c.Name)
	switch {
	case kind.init:
		if _, named := st.rules.runFor[c.Name]; !named {
			lifetime = st.rules.Init
		}
		// A code for all containers means the main ones: else no Pod with init containers could fail in them.
		code = st.rules.exitCode[c.Name]
	case kind.sidecar:
		if _, named := st.rules.runFor[c.Name]; !named {
			lifetime = forever
		}
	case kind.ephemeral:
		if !said {
			lifetime = st.rules.RunFor
		}
	default:
		lifetime = st.rules.lifetime(st.Pod, c.Name)
	}
	return st.in(lifetime), code
}

// exit ends a running container.
func (c *Container) exit(now time.Time, code int32) {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	c.Before = c.Last
	c.Last = &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, ContainerID: c.ID, StartedAt: stamp(c.Since), FinishedAt: stamp(now),
	}
	if now.Sub(c.Since) >= calmAfter {
		c.Crashes = 0
	}
	c.Does, c.Since, c.Code, c.Next, c.ReadyAt = exited, now, code, time.Time{}, time.Time{}
}

// afterExit decides whether a container that ended by itself comes back, and when: soon after the first time, and
// after a pause that doubles from then on.
func (st *step) afterExit(c *Container, kind life) {
	if !st.restarts(c, kind) {
		return
	}
	c.Crashes++
	delay := st.rules.Restart
	if c.Crashes > 1 {
		delay = st.rules.Backoff << min(c.Crashes-2, 10)
		delay = min(delay, longBackoff)
		c.Reason = reasonCrashLoop
		c.Message = "back-off " + delay.String() + " restarting failed container=" + c.Name +
			" pod=" + st.Pod.Name + "_" + st.Pod.Namespace + "(" + string(st.Pod.UID) + ")"
	}
	c.Next = st.in(delay)
	st.due(c.Next)
}

func (st *step) restarts(c *Container, kind life) bool {
	policy := st.Pod.Spec.RestartPolicy
	switch {
	case kind.ephemeral:
		return false
	case kind.sidecar:
		return true
	case kind.init:
		return c.Code != 0 && policy != corev1.RestartPolicyNever
	case policy == corev1.RestartPolicyNever:
		return false
	case policy == corev1.RestartPolicyOnFailure:
		return c.Code != 0
	default:
		return true
	}
}

// killTarget is the container that a value of AnnotationKill names.
func killTarget(value string) string {
	name, _, _ := strings.Cut(value, "/")
	return name
}

// containerSpec finds a main or init container of the Pod by name; nil if there is none.
func (st *step) containerSpec(name string) *corev1.Container {
	for _, containers := range [][]corev1.Container{st.Pod.Spec.Containers, st.Pod.Spec.InitContainers} {
		for i := range containers {
			if containers[i].Name == name {
				return &containers[i]
			}
		}
	}
	return nil
}

// kindOf tells init containers and sidecars from main containers; nil is none of the Pod's own: ephemeral.
func (st *step) kindOf(spec *corev1.Container) life {
	if spec == nil {
		return life{ephemeral: true}
	}
	for i := range st.Pod.Spec.InitContainers {
		if st.Pod.Spec.InitContainers[i].Name == spec.Name {
			sidecar := podutil.IsRestartableInitContainer(spec)
			return life{sidecar: sidecar, init: !sidecar}
		}
	}
	return life{}
}
