package restart

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

func TestRestOfTheGrace(t *testing.T) {
	for name, tc := range map[string]struct{ grace, used, want time.Duration }{
		"no hook":                   {30 * time.Second, 0, 30 * time.Second},
		"a hook of some seconds":    {30 * time.Second, 12400 * time.Millisecond, 18 * time.Second},
		"a hook of nearly all":      {30 * time.Second, 29500 * time.Millisecond, 2 * time.Second},
		"a hook that was given up":  {30 * time.Second, 30 * time.Second, 2 * time.Second},
		"no grace at all":           {0, 0, 2 * time.Second},
		"a hook of less than 1 sec": {5 * time.Second, 900 * time.Millisecond, 5 * time.Second},
	} {
		if got := rest(tc.grace, tc.used); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestJobsAreAppliedUntilForgotten: what a job came to must reach the status, however often that is tried.
func TestJobsAreAppliedUntilForgotten(t *testing.T) {
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
		"the hook has run":       {hook, nil, state(func(s *recreate.State) { s.PreStopTime = &at })},
		"the hook has failed":    {hook, errors.New("exit 1"), state(func(s *recreate.State) { s.PreStopTime = &at })},
		"the hook could not run": {hook, away, state(func(*recreate.State) {})},
		"it was stopped":         {stop, nil, state(func(*recreate.State) {})},
		"it could not be stopped": {stop, errors.New("stuck"), state(func(s *recreate.State) {
			s.Phase, s.Message = v1beta1.ContainerRecreateRequestFailed, "kill container error: stuck"
		})},
		"nobody could be asked to": {stop, away, state(func(*recreate.State) {})},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			j := newJobs(t.Context(), func(types.NamespacedName) { close(ended) })
			j.start(pod, job{stage: tc.stage, containerID: "c://1"}, func(context.Context) error { return tc.err })
			<-ended
			if j.busy(pod) {
				t.Error("a job that has ended is under way")
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
			j.forget(pod)
			if j.apply(pod, &stale, now) {
				t.Error("it is applied again")
			}
		})
	}
}

func TestHooksOverHTTP(t *testing.T) {
	var heard *http.Request
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = r
		w.WriteHeader(http.StatusInternalServerError) // any answer will do
	}))
	t.Cleanup(web.Close)
	port := web.Listener.Addr().(*net.TCPAddr).Port
	hooked := func(get corev1.HTTPGetAction) target {
		grace := int64(5)
		r := &v1beta1.ContainerRecreateRequest{}
		r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: &grace}
		r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{
			Name: "a", PreStop: &corev1.LifecycleHandler{HTTPGet: &get}, Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(port)}},
		}}
		return target{Kill: recreate.Kill{Name: "a"}, request: r, pod: &corev1.Pod{Status: corev1.PodStatus{PodIP: "127.0.0.1"}}}
	}
	for name, tc := range map[string]struct {
		get  corev1.HTTPGetAction
		want string // of the error
	}{
		"a named port":           {corev1.HTTPGetAction{Port: intstr.FromString("web"), Path: "/drain?now"}, ""},
		"a number as text":       {corev1.HTTPGetAction{Port: intstr.FromString(strconv.Itoa(port)), Path: "drain?now"}, ""},
		"https answered plainly": {corev1.HTTPGetAction{Port: intstr.FromInt(port), Path: "/drain?now", Scheme: corev1.URISchemeHTTPS}, ""},
		"an unknown port":        {corev1.HTTPGetAction{Port: intstr.FromString("other")}, "the container has no port other"},
	} {
		t.Run(name, func(t *testing.T) {
			heard = nil
			w := &worker{Config: Config{Events: record.NewFakeRecorder(9)}}
			err := w.runHook(t.Context(), hooked(tc.get), "1")
			if tc.want != "" {
				if err == nil || err.Error() != tc.want {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if heard == nil || heard.URL.String() != "/drain?now" || heard.UserAgent() != "kube-lifecycle" {
				t.Errorf("heard %+v", heard)
			}
		})
	}
}
