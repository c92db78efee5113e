package recreate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

const (
	pending    = v1beta1.ContainerRecreateRequestPending
	recreating = v1beta1.ContainerRecreateRequestRecreating
	succeeded  = v1beta1.ContainerRecreateRequestSucceeded
	failure    = v1beta1.ContainerRecreateRequestFailed
	ignore     = v1beta1.ContainerRecreateRequestFailurePolicyIgnore
)

type strategyOf = v1beta1.ContainerRecreateRequestStrategy

// asked returns a request for containers a, b and so on, of which a0, b0 ran when it was made.
func asked(s strategyOf, states []State, names ...string) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon().Add(-time.Minute))}}
	r.Spec.Strategy, r.Status.ContainerRecreateStates = &s, states
	for _, name := range names {
		r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{
			Name: name, StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "c://" + name + "0"},
		})
	}
	return r
}

func runs(id string, ago time.Duration) Container {
	return Container{ID: "c://" + id, State: Running, StartedAt: noon().Add(-ago)}
}

func ended(id string, code int32) Container {
	return Container{ID: "c://" + id, State: Exited, ExitCode: code}
}

// ready returns a Pod whose containers of the given identities are ready.
func ready(policy corev1.RestartPolicy, containers map[string]string) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: policy}}
	for name, id := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		p.Status.ContainerStatuses = append(
			p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, ContainerID: "c://" + id, Ready: true},
		)
	}
	return p
}

func TestNext(t *testing.T) {
	killed := func(name, id string) State {
		return State{Name: name, Phase: recreating, IsKilled: true, ContainerID: "c://" + id}
	}
	is := func(name string, p v1beta1.ContainerRecreateRequestPhase) State { return State{Name: name, Phase: p} }
	hooked := killed("a", "a0")
	hooked.PreStopTime = &metav1.Time{Time: noon()}
	onlyA := []string{"a"}
	both := []string{"a", "b"}
	always := ready(corev1.RestartPolicyAlways, map[string]string{"a": "a1", "b": "b0"})
	cases := map[string]struct {
		strategy strategyOf
		states   []State
		names    []string
		runtime  map[string]Container
		pod      *corev1.Pod
		want     Step
	}{
		"the first container is stopped first": {
			names: both, runtime: map[string]Container{"a": runs("a0", time.Hour), "b": runs("b0", time.Hour)},
			want: Step{States: []State{killed("a", "a0"), is("b", pending)}, Kill: &Kill{Name: "a", ID: "c://a0"}},
		},
		"the next one follows without waiting": {
			names: both, states: []State{killed("a", "a0"), is("b", pending)}, pod: always,
			runtime: map[string]Container{"a": ended("a0", 0), "b": runs("b0", time.Hour)},
			want:    Step{States: []State{killed("a", "a0"), killed("b", "b0")}, Kill: &Kill{Name: "b", ID: "c://b0"}},
		},
		"in order it waits for the one before": {
			names: both, states: []State{killed("a", "a0"), is("b", pending)}, strategy: strategyOf{OrderedRecreate: true}, pod: always,
			runtime: map[string]Container{"a": ended("a0", 0), "b": runs("b0", time.Hour)},
			want:    Step{States: []State{killed("a", "a0"), is("b", pending)}},
		},
		"in order it follows when the one before is ready": {
			names: both, states: []State{killed("a", "a0"), is("b", pending)}, strategy: strategyOf{OrderedRecreate: true}, pod: always,
			runtime: map[string]Container{"a": runs("a1", time.Second), "b": runs("b0", time.Hour)},
			want: Step{States: []State{{Name: "a", Phase: succeeded, IsKilled: true, ContainerID: "c://a0"}, killed("b", "b0")},
				Kill: &Kill{Name: "b", ID: "c://b0"}},
		},
		"a kill that was not finished is finished": {
			names: both, states: []State{killed("a", "a0"), is("b", pending)},
			runtime: map[string]Container{"a": runs("a0", time.Hour), "b": runs("b0", time.Hour)},
			want:    Step{States: []State{killed("a", "a0"), is("b", pending)}, Kill: &Kill{Name: "a", ID: "c://a0"}},
		},
		"a hook that has run is not run again": {
			names: onlyA, states: []State{hooked}, runtime: map[string]Container{"a": runs("a0", time.Hour)},
			want: Step{States: []State{hooked}, Kill: &Kill{Name: "a", ID: "c://a0", SkipPreStop: true}},
		},
		"one that restarted by itself counts": {
			names: onlyA, runtime: map[string]Container{"a": runs("a1", time.Second)}, pod: always,
			want: Step{States: []State{is("a", succeeded)}, Complete: true},
		},
		"by force one that restarted by itself is stopped": {
			names: onlyA, strategy: strategyOf{ForceRecreate: true}, runtime: map[string]Container{"a": runs("a1", time.Second)},
			pod:  always,
			want: Step{States: []State{killed("a", "a1")}, Kill: &Kill{Name: "a", ID: "c://a1"}},
		},
		"by force only once": {
			names: onlyA, strategy: strategyOf{ForceRecreate: true}, states: []State{killed("a", "a0")}, pod: always,
			runtime: map[string]Container{"a": runs("a1", time.Second)},
			want:    Step{States: []State{{Name: "a", Phase: succeeded, IsKilled: true, ContainerID: "c://a0"}}, Complete: true},
		},
		"one that had ended before needs no kill, also by force": {
			names: onlyA, strategy: strategyOf{ForceRecreate: true}, runtime: map[string]Container{"a": ended("a0", 1)}, pod: always,
			want: Step{States: []State{killed("a", "a0")}},
		},
		"it must have run for long enough": {
			names: onlyA, strategy: strategyOf{MinStartedSeconds: 10}, states: []State{killed("a", "a0")}, pod: always,
			runtime: map[string]Container{"a": runs("a1", 4*time.Second)},
			want:    Step{States: []State{killed("a", "a0")}, Wait: 6*time.Second + time.Millisecond},
		},
		"it is not ready yet": {
			names: onlyA, states: []State{killed("a", "a0")}, pod: ready(corev1.RestartPolicyAlways, map[string]string{"a": "a0"}),
			runtime: map[string]Container{"a": runs("a1", time.Minute)},
			want:    Step{States: []State{killed("a", "a0")}},
		},
		"never restarted": {
			names: both, states: []State{killed("a", "a0"), is("b", pending)},
			pod:     ready(corev1.RestartPolicyNever, map[string]string{"a": "a0"}),
			runtime: map[string]Container{"a": ended("a0", 1), "b": runs("b0", time.Hour)},
			want: Step{States: []State{{Name: "a", Phase: failure, IsKilled: true, ContainerID: "c://a0",
				Message: "container will not be restarted because of restartPolicy"}, is("b", pending)}, Complete: true},
		},
		"restarted on failure only, and it ended well": {
			names: onlyA, states: []State{killed("a", "a0")}, pod: ready(corev1.RestartPolicyOnFailure, map[string]string{"a": "a0"}),
			runtime: map[string]Container{"a": ended("a0", 0)},
			want: Step{States: []State{{Name: "a", Phase: failure, IsKilled: true, ContainerID: "c://a0",
				Message: "container will not be restarted because of restartPolicy"}}, Complete: true},
		},
		"a failure is passed over": {
			names: both, states: []State{is("a", failure), is("b", pending)}, strategy: strategyOf{FailurePolicy: ignore},
			runtime: map[string]Container{"b": runs("b0", time.Hour)},
			want:    Step{States: []State{is("a", failure), killed("b", "b0")}, Kill: &Kill{Name: "b", ID: "c://b0"}},
		},
		"not on the node": {
			names: onlyA, want: Step{States: []State{{Name: "a", Phase: pending, Message: "not found container on Node"}}},
		},
		"the readiness is known from the manager only": {
			names: onlyA, states: []State{killed("a", "a0")}, runtime: map[string]Container{"a": runs("a1", time.Minute)},
			want: Step{States: []State{killed("a", "a0")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Next(Observed{Request: asked(tc.strategy, tc.states, tc.names...), Containers: tc.runtime, Pod: tc.pod, Now: noon()})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadinessIsReadFromTheSnapshotWhereThePodIsNotKnown(t *testing.T) {
	r := asked(strategyOf{}, nil, "a")
	r.Status.ContainerStatusSnapshot = []v1beta1.ContainerRecreateRequestSyncContainerStatus{
		{Name: "a", ContainerID: "c://a1", Ready: true},
	}
	if got := Next(Observed{Request: r, Containers: map[string]Container{"a": runs("a1", 0)}, Now: noon()}); !got.Complete {
		t.Errorf("the request goes on: %v", got)
	}
}

func TestWaitingIsExplained(t *testing.T) {
	p := ready(corev1.RestartPolicyAlways, map[string]string{"a": "a0"})
	p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	got := Next(
		Observed{Request: asked(strategyOf{}, nil, "a"), Pod: p, Containers: map[string]Container{"a": ended("a0", 1)}, Now: noon()},
	)
	if want := "waits to be restarted: CrashLoopBackOff"; got.States[0].Message != want {
		t.Errorf("message %q, want %q", got.States[0].Message, want)
	}
}
