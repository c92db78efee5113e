package restart

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// TestTasksAreAppliedUntilForgotten: what a task came to must reach the status, however often that is tried.
func TestTasksAreAppliedUntilForgotten(t *testing.T) {
	pod := types.NamespacedName{Namespace: "ns", Name: "p"}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	away := fmt.Errorf("stopping: %w", status.Error(codes.Unavailable, "connection refused"))
	at := metav1.NewTime(now)
	state := func(change func(*recreate.State)) recreate.State {
		s := recreate.State{Name: "a", Phase: v1beta1.ContainerRecreateRequestRecreating, IsKilled: true, ContainerID: "c://1"}
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		stage stage
		err   error
		want  recreate.State
	}{
		"the hook has run":       {runHook, nil, state(func(s *recreate.State) { s.PreStopTime = &at })},
		"the hook has failed":    {runHook, errors.New("exit 1"), state(func(s *recreate.State) { s.PreStopTime = &at })},
		"the hook could not run": {runHook, away, state(func(*recreate.State) {})},
		"it was stopped":         {stopContainer, nil, state(func(*recreate.State) {})},
		"it could not be stopped": {stopContainer, errors.New("stuck"), state(func(s *recreate.State) {
			s.Phase, s.Message = v1beta1.ContainerRecreateRequestFailed, "kill container error: stuck"
		})},
		"nobody could be asked to": {stopContainer, away, state(func(*recreate.State) {})},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			j := newTasks(t.Context(), func(types.NamespacedName) { close(ended) })
			j.start(pod, task{stage: tc.stage, containerID: "c://1"}, func(context.Context) error { return tc.err })
			<-ended
			if j.busy(pod) {
				t.Error("a task that has ended is under way")
			}
			stale := v1beta1.ContainerRecreateRequestStatus{}
			if !j.apply(pod, &stale, now) {
				t.Error("there is nothing to apply")
			}
			for range 2 {
				s := v1beta1.ContainerRecreateRequestStatus{ContainerRecreateStates: []recreate.State{state(func(*recreate.State) {})}}
				if !j.apply(pod, &s, now) {
					t.Error("there is nothing to apply")
				}
				if diff := cmp.Diff(tc.want, s.ContainerRecreateStates[0]); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			j.setStored(pod)
			if j.apply(pod, &stale, now) {
				t.Error("it is applied again")
			}
		})
	}
}

// TestTasksOfPodsWithoutRequestsAreDropped: a request may end, by its deadline or with its Pod, while a container of it is being stopped.
func TestTasksOfPodsWithoutRequestsAreDropped(t *testing.T) {
	pod := types.NamespacedName{Namespace: "ns", Name: "p"}
	ended := make(chan struct{}, 1)
	j := newTasks(t.Context(), func(types.NamespacedName) { ended <- struct{}{} })
	release := make(chan struct{})
	j.start(pod, task{stage: runHook, containerID: "c://1"}, func(context.Context) error { <-release; return nil })
	j.drop(pod)
	if !j.busy(pod) {
		t.Error("a task under way is forgotten: another would be begun beside it")
	}
	close(release)
	<-ended
	j.apply(pod, &v1beta1.ContainerRecreateRequestStatus{ContainerRecreateStates: []recreate.State{
		{Name: "a", Phase: v1beta1.ContainerRecreateRequestRecreating, IsKilled: true, ContainerID: "c://1"},
	}}, time.Now())
	j.drop(pod)
	if len(j.byPod) > 0 {
		t.Errorf("what nobody asks for is remembered: %v", j.byPod)
	}
}
