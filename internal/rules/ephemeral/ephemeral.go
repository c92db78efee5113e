// Package ephemeral is about ephemeral containers that a job adds to Pods: which Pods can take them, which job they are of, and what has
// become of them.
//
// A variable in the containers, which nobody can change afterwards, names the job that added them. So a job never adds them twice, whatever
// its controller has forgotten.
package ephemeral

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Jobs returns the UIDs of the jobs that have added containers to the Pod, each once.
func Jobs(p *corev1.Pod) []types.UID {
	var out []types.UID
	for i := range p.Spec.EphemeralContainers {
		if job := jobOf(&p.Spec.EphemeralContainers[i]); job != "" && !slices.Contains(out, job) {
			out = append(out, job)
		}
	}
	return out
}

// Has reports whether the job has added containers to the Pod.
func Has(p *corev1.Pod, job types.UID) bool { return slices.Contains(Jobs(p), job) }

func jobOf(c *corev1.EphemeralContainer) types.UID {
	for i := range c.Env {
		if c.Env[i].Name == keys.EphemeralJobID {
			return types.UID(c.Env[i].Value)
		}
	}
	return ""
}

// Into returns a copy of the Pod with the containers added, each marked as the job's.
func Into(p *corev1.Pod, containers []corev1.EphemeralContainer, job types.UID) *corev1.Pod {
	out := p.DeepCopy()
	for i := range containers {
		c := containers[i].DeepCopy()
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == keys.EphemeralJobID })
		c.Env = append(c.Env, corev1.EnvVar{Name: keys.EphemeralJobID, Value: string(job)})
		out.Spec.EphemeralContainers = append(out.Spec.EphemeralContainers, *c)
	}
	return out
}

// Unfit says why the Pod can't take the containers; empty when it can, as far as can be told. It spares writes that the API server would
// refuse.
func Unfit(p *corev1.Pod, containers []corev1.EphemeralContainer) string {
	if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return "it is a static Pod"
	}
	names := map[string]bool{}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			names[list[i].Name] = true
		}
	}
	for i := range containers {
		if target := containers[i].TargetContainerName; target != "" && !names[target] {
			return fmt.Sprintf("it has no container %s to target", target)
		}
	}
	for i := range p.Spec.EphemeralContainers {
		names[p.Spec.EphemeralContainers[i].Name] = true
	}
	for i := range containers {
		if names[containers[i].Name] {
			return fmt.Sprintf("it has a container %s already", containers[i].Name)
		}
	}
	return ""
}

// State is what has become of a job in one Pod.
type State int

const (
	// Absent means that the job has added nothing.
	Absent State = iota
	// Waiting means that no container of the job runs or has failed, and that not all have ended.
	Waiting
	// Running means that one runs, and none has failed.
	Running
	// Succeeded means that all have ended with code 0.
	Succeeded
	// Failed means that one has ended with another code, or can't be started.
	Failed
)

// Progress is how far a job has come in one Pod.
type Progress struct {
	State State
	// Busy means that a container of the job runs or may still start. It may be so in a Pod that has failed, as long as another container
	// has not ended.
	Busy bool
	// Why says what has failed; empty for all but Failed.
	Why string
}

// Reasons for which a container waits that will never start: an ephemeral container is not tried again, and its image can't be changed.
const (
	runContainerError = "RunContainerError"
	invalidImageName  = "InvalidImageName"
)

// ProgressOf returns how far a job has come in the Pod. A container that has not ended when its Pod ends has failed.
func ProgressOf(p *corev1.Pod, job types.UID) Progress {
	seen := map[string]corev1.ContainerState{}
	for i := range p.Status.EphemeralContainerStatuses {
		status := &p.Status.EphemeralContainerStatuses[i]
		seen[status.Name] = status.State
	}
	out, all, done := Progress{State: Absent}, 0, 0
	for i := range p.Spec.EphemeralContainers {
		c := &p.Spec.EphemeralContainers[i]
		if jobOf(c) != job {
			continue
		}
		all++
		switch state := seen[c.Name]; {
		case state.Terminated != nil && state.Terminated.ExitCode == 0:
			done++
		case failure(state) != "":
			out.fail(c.Name + " " + failure(state))
		case pod.IsFinished(p):
			out.fail(c.Name + " was cut off by the end of the Pod")
		default:
			out.Busy = true
			if state.Running != nil && out.State != Failed {
				out.State = Running
			}
		}
	}
	switch {
	case all > 0 && done == all:
		out.State = Succeeded
	case all > 0 && out.State == Absent:
		out.State = Waiting
	}
	return out
}

func (s *Progress) fail(why string) {
	if s.State != Failed {
		s.State, s.Why = Failed, why
	}
}

// failure says how a container has failed; empty when it has not.
func failure(s corev1.ContainerState) string {
	switch {
	case s.Terminated != nil && s.Terminated.ExitCode != 0:
		return fmt.Sprintf("exited with code %d", s.Terminated.ExitCode)
	case s.Waiting != nil && (s.Waiting.Reason == runContainerError || s.Waiting.Reason == invalidImageName):
		return "can't be started: " + s.Waiting.Reason
	}
	return ""
}
