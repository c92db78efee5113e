// Package terminate decides when the work of a Pod is done although sidecars still run in it, and how each sidecar is then stopped.
//
// Users mark sidecars by environment variables; all other containers are the main ones. The work is done when all main containers have
// ended: with restartPolicy Never with any exit code, with OnFailure with 0. Restartable init containers are not considered, because
// kubelets stop them.
package terminate

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Sidecars are the sidecars of a Pod by the way in which they are stopped.
type Sidecars struct {
	// Stopped are stopped where they run, and their exit codes count.
	Stopped []string
	// Ignored are stopped by ending the Pod, and their exit codes do not count.
	Ignored []string
	// Replaced are given another image, which ends by itself; the value is that image. A container can be in here and in one of the others.
	Replaced map[string]string
}

// Marked reports whether any container of the Pod is marked as a sidecar. A Pod with restartPolicy Always never ends, and has none.
func Marked(p *corev1.Pod) bool {
	if p.Spec.RestartPolicy != corev1.RestartPolicyNever && p.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	for i := range p.Spec.Containers {
		if isSidecar(&p.Spec.Containers[i]) {
			return true
		}
	}
	return false
}

func isSidecar(c *corev1.Container) bool {
	return isTrue(c, keys.TerminateSidecarEnv) || value(c, keys.TerminateSidecarWithImageEnv) != ""
}

func isTrue(c *corev1.Container, name string) bool { return strings.EqualFold(value(c, name), "true") }

// value returns the literal value of a variable. Of several of the same name the last one counts.
func value(c *corev1.Container, name string) string {
	found := ""
	for i := range c.Env {
		if c.Env[i].Name == name {
			found = c.Env[i].Value
		}
	}
	return found
}

// HasMain reports whether any container is not a sidecar. Without one, the work of a Pod is never done.
func HasMain(p *corev1.Pod) bool {
	for i := range p.Spec.Containers {
		if !isSidecar(&p.Spec.Containers[i]) {
			return true
		}
	}
	return false
}

// IsDone reports whether all main containers have ended, and whether all have succeeded.
func IsDone(p *corev1.Pod) (done, succeeded bool) {
	if len(p.Status.ContainerStatuses) != len(p.Spec.Containers) {
		return false, false
	}
	succeeded = true
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if isSidecar(c) {
			continue
		}
		status := pod.ContainerStatus(p, c.Name)
		if status == nil || status.State.Terminated == nil {
			return false, false
		}
		succeeded = succeeded && status.State.Terminated.ExitCode == 0
	}
	return succeeded || p.Spec.RestartPolicy == corev1.RestartPolicyNever, succeeded
}

// Left returns the sidecars that have not ended. Where containers restart after a failure, a sidecar that fails as it is stopped would run
// again: it is stopped by ending the Pod, so that its exit code can't count.
func Left(p *corev1.Pod) Sidecars {
	left := Sidecars{Replaced: map[string]string{}}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if !isSidecar(c) || hasEnded(p, c.Name) {
			continue
		}
		switch {
		case !isTrue(c, keys.TerminateSidecarEnv):
		case isTrue(c, keys.TerminateSidecarIgnoreExitCodeEnv), p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
			left.Ignored = append(left.Ignored, c.Name)
		default:
			left.Stopped = append(left.Stopped, c.Name)
		}
		if image := value(c, keys.TerminateSidecarWithImageEnv); image != "" {
			left.Replaced[c.Name] = image
		}
	}
	return left
}

// hasEnded reports whether a container has ended and will not be restarted.
func hasEnded(p *corev1.Pod, name string) bool {
	status := pod.ContainerStatus(p, name)
	if status == nil || status.State.Terminated == nil {
		return false
	}
	return p.Spec.RestartPolicy != corev1.RestartPolicyOnFailure || status.State.Terminated.ExitCode == 0
}

// RunsSince returns when a running container was started, false for one that does not run and can't be stopped.
func RunsSince(p *corev1.Pod, name string) (time.Time, bool) {
	status := pod.ContainerStatus(p, name)
	if status == nil || status.State.Running == nil {
		return time.Time{}, false
	}
	return status.State.Running.StartedAt.Time, true
}

// Replace gives a container of the Pod the image that ends by itself, and reports whether it had another one.
func Replace(p *corev1.Pod, name, image string) bool {
	c := pod.Container(p, name)
	if c == nil || c.Image == image {
		return false
	}
	c.Image = image
	return true
}
