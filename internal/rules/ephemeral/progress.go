package ephemeral

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

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
