package probe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	rules "github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// container is a runtime with one container, main.
type container struct {
	mu    sync.Mutex
	id    string
	ended bool
	out   cri.Output
	err   error
	execs int
}

func (c *container) Containers(context.Context, string) (map[string]*runtimeapi.Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := runtimeapi.ContainerState_CONTAINER_RUNNING
	if c.ended {
		state = runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return map[string]*runtimeapi.Container{"main": {Id: c.id, State: state}}, nil
}

func (c *container) ContainerStatus(context.Context, string) (*runtimeapi.ContainerStatus, error) {
	return &runtimeapi.ContainerStatus{StartedAt: time.Now().Add(-time.Hour).UnixNano()}, nil
}

func (c *container) Exec(context.Context, string, []string, time.Duration) (cri.Output, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.execs++
	return c.out, c.err
}

func command(period int32) v1alpha1.ContainerProbe {
	p := v1alpha1.ContainerProbe{Name: "m#a", ContainerName: "main"}
	p.Probe.Exec, p.Probe.PeriodSeconds = &corev1.ExecAction{Command: []string{"ask"}}, period
	return p
}

// withRuntime returns a probe of a runtime that does not run by itself: a test runs it.
func withRuntime(t *testing.T, c *container) (*probes, podProbe) {
	t.Helper()
	p := podProbe{key: key{"uid", "m#a"}, namespace: "ns", ip: "10.0.0.1", spec: command(1)}
	s := newProbes(t.Context(), func() (runtime, error) { return c, nil }, func() {}, time.Now)
	s.byKey[p.key] = &run{podProbe: p, cancel: func() {}}
	return s, p
}

func TestAnswersOfCommands(t *testing.T) {
	away := fmt.Errorf("running: %w", status.Error(codes.Unavailable, "gone"))
	for name, tc := range map[string]struct {
		out  cri.Output
		err  error
		want string
	}{
		"exit 0":                  {cri.Output{Stdout: []byte("out\n"), Stderr: []byte("err")}, nil, "Succeeded out"},
		"exit 1":                  {cri.Output{Stdout: []byte("out"), Stderr: []byte("err\n"), ExitCode: 1}, nil, "Failed err"},
		"it took too long":        {cri.Output{}, fmt.Errorf("running: %w", cri.ErrTimedOut), `Failed command ["ask"] timed out after 1 s`},
		"there is no such thing":  {cri.Output{}, errors.New("no such file"), "Failed no such file"},
		"the runtime is not here": {cri.Output{}, away, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &container{id: "1", out: tc.out, err: tc.err}
			probes, a := withRuntime(t, c)
			probes.runOnce(t.Context(), a, &rules.Counter{})
			got := ""
			if state, known := probes.results()[a.key]; known {
				got = string(state.State) + " " + state.Message
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestContainersThatRestart(t *testing.T) {
	c := &container{id: "1", out: cri.Output{Stdout: []byte("fine")}}
	probes, a := withRuntime(t, c)
	counter := &rules.Counter{}
	says := func(want string) {
		t.Helper()
		probes.runOnce(t.Context(), a, counter)
		state := probes.results()[a.key]
		if got := string(state.State) + " " + state.Message; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	says("Succeeded fine")
	c.ended = true
	execs := c.execs
	says("Failed Container(main) is Non-running")
	if c.execs != execs {
		t.Error("a container that does not run is asked")
	}
	c.ended, c.id, c.err = false, "2", status.Error(codes.Unavailable, "gone")
	says("Unknown ")
	c.err = nil
	says("Succeeded fine")
}

func TestUnchangedResultsAreToldRarely(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	told := 0
	probes := newProbes(t.Context(), nil, func() { told++ }, func() time.Time { return now })
	k := key{"uid", "m#a"}
	probes.byKey[k] = &run{podProbe: podProbe{key: k}}
	for second := range 1300 {
		probes.publish(t.Context(), k, rules.Outcome{State: v1alpha1.ProbeSucceeded, Message: "fine"})
		now = now.Add(time.Second)
		if second == 0 && told != 1 {
			t.Error("the first result is not told")
		}
	}
	if told != 3 {
		t.Errorf("it was told %d times in 1300 s, want 3", told)
	}
	first := probes.results()[k].LastTransitionTime
	if want := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC); !first.Time.Equal(want) {
		t.Errorf("the transition is at %s, want %s", first, want)
	}
}

func TestReportFollowsTheQuestions(t *testing.T) {
	n := &v1alpha1.NodePodProbe{}
	n.Spec.PodProbes = []v1alpha1.PodProbe{
		{Name: "p", Namespace: "ns", UID: "u", Probes: []v1alpha1.ContainerProbe{{Name: "m#new"}, {Name: "m#old"}, {Name: "m#none"}}},
	}
	n.Status.PodProbeStatuses = []v1alpha1.PodProbeStatus{
		{
			Name: "p", Namespace: "ns", UID: "u",
			ProbeStates: []v1alpha1.ContainerProbeState{
				{Name: "m#old", Message: "kept"}, {Name: "m#gone"}, {Name: "m#new", Message: "before"},
			},
		},
		{Name: "q", Namespace: "ns", UID: "gone", ProbeStates: []v1alpha1.ContainerProbeState{{Name: "m#old"}}},
	}
	got := report(
		n, map[key]v1alpha1.ContainerProbeState{{"u", "m#new"}: {Name: "m#new", Message: "now"}, {"gone", "m#old"}: {Name: "m#old"}},
	)
	want := v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{Name: "p", Namespace: "ns", UID: "u", ProbeStates: []v1alpha1.ContainerProbeState{
		{Name: "m#new", Message: "now"}, {Name: "m#old", Message: "kept"},
	}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestQuestionsThatChange(t *testing.T) {
	c := &container{id: "1", out: cri.Output{Stdout: []byte("fine")}}
	probes, a := withRuntime(t, c)
	spec := func(probe v1alpha1.ContainerProbe) *v1alpha1.NodePodProbe {
		n := &v1alpha1.NodePodProbe{}
		n.Spec.PodProbes = []v1alpha1.PodProbe{{Name: "p", UID: a.pod, IP: a.ip, Probes: []v1alpha1.ContainerProbe{probe}}}
		return n
	}
	slow := command(3600)
	probes.follow(spec(slow))
	probes.publish(t.Context(), a.key, rules.Outcome{State: v1alpha1.ProbeSucceeded, Message: "fine"})
	state := func() v1alpha1.ProbeState { return probes.results()[a.key].State }
	faster := *slow.DeepCopy()
	faster.Probe.PeriodSeconds = 3000
	probes.follow(spec(faster))
	if state() != v1alpha1.ProbeSucceeded {
		t.Errorf("another pace makes the result %s", state())
	}
	other := *faster.DeepCopy()
	other.Probe.Exec.Command = []string{"another"}
	probes.follow(spec(other))
	if state() != v1alpha1.ProbeUnknown {
		t.Errorf("another question leaves the result %s", state())
	}
	probes.follow(&v1alpha1.NodePodProbe{})
	if got := probes.results(); len(got) > 0 {
		t.Errorf("what is not asked any more has results: %v", got)
	}
}
