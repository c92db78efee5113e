package simnode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// epoch is when every story begins.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// event is something that is done to the Pod from outside.
type event struct {
	at time.Duration
	do func(*corev1.Pod)
}

// story is a Pod and what befalls it.
type story struct {
	pod    *corev1.Pod
	events []event
	until  time.Duration // the story's end; 10 seconds if zero
	// missing, while true, keeps containers from starting for want of configuration.
	missing func(at time.Duration) string
	// restartAt is when the simulator is restarted and has only the Pod's status to go by; zero for never.
	restartAt time.Duration
}

// tell plays a story and returns one line for each report a kubelet would make.
func tell(t *testing.T, s story) []string {
	t.Helper()
	if s.until == 0 {
		s.until = 10 * time.Second
	}
	var lines []string
	pod, box := s.pod.DeepCopy(), Sandbox{IP: "10.0.0.1"}
	for now := time.Duration(0); ; {
		for _, e := range s.events {
			if e.at == now {
				e.do(pod)
			}
		}
		situation := Situation{Pod: pod, Now: epoch.Add(now), Defaults: DefaultRules(), HostIP: "192.168.0.1"}
		if s.missing != nil {
			situation.Missing = func(*corev1.Pod, *corev1.Container) string { return s.missing(now) }
		}
		if s.restartAt > 0 && now == s.restartAt {
			box = Recover(situation)
		}
		next, wake, err := Advance(box, situation)
		if err != nil {
			t.Fatalf("reading annotations: %v", err)
		}
		box = next
		status := Status(box, situation)
		patch, err := patchOf(pod, &status)
		if err != nil {
			t.Fatal(err)
		}
		if patch != nil {
			pod.Status = status
			lines = append(lines, fmt.Sprintf("%v %s", now, summary(&status)))
		}
		if box.Stopped {
			return append(lines, fmt.Sprintf("%v gone", now))
		}
		now = moment(s, now, wake)
		if now > s.until {
			return lines
		}
	}
}

// moment is the next time at which something happens.
func moment(s story, now time.Duration, wake time.Time) time.Duration {
	next := s.until + 1
	if !wake.IsZero() {
		next = wake.Sub(epoch)
	}
	for _, at := range append(times(s.events), s.restartAt) {
		if at > now && at < next {
			next = at
		}
	}
	return next
}

func times(events []event) []time.Duration {
	var all []time.Duration
	for _, e := range events {
		all = append(all, e.at)
	}
	return all
}

// summary is a status in a line: phase, whether Ready, and each container's state, restarts and readiness.
func summary(status *corev1.PodStatus) string {
	parts := []string{string(status.Phase)}
	for _, condition := range status.Conditions {
		switch {
		case condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue:
			parts = append(parts, "Ready")
		case condition.Type == corev1.PodReady && condition.Reason == "ReadinessGatesNotReady":
			parts = append(parts, "gated")
		case condition.Type == corev1.PodResizePending:
			parts = append(parts, "resize="+condition.Reason)
		case condition.Type == corev1.PodResizeInProgress:
			parts = append(parts, "resizing")
		}
	}
	for _, entries := range [][]corev1.ContainerStatus{
		status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for i := range entries {
			parts = append(parts, containerSummary(&entries[i]))
		}
	}
	return strings.Join(parts, " ")
}

func containerSummary(c *corev1.ContainerStatus) string {
	state := "?"
	switch {
	case c.State.Waiting != nil:
		state = c.State.Waiting.Reason
	case c.State.Running != nil:
		state = strings.TrimPrefix(c.Image, "docker.io/library/")
	case c.State.Terminated != nil:
		state = fmt.Sprintf("exit(%d)", c.State.Terminated.ExitCode)
	}
	text := c.Name + "=" + state
	if c.RestartCount > 0 {
		text += fmt.Sprintf("#%d", c.RestartCount)
	}
	if c.Ready {
		text += "+"
	}
	if c.Resources != nil && len(c.Resources.Requests) > 0 {
		text += "[" + c.Resources.Requests.Cpu().String() + "]"
	}
	return text
}
