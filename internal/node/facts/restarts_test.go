package facts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientrecord "k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
	"github.com/seed-69ecc383/kruise/test/kit/fakecri"
)

// stopping is restarts over a runtime that has container m of the test's Pod.
type stopping struct {
	*restarts
	runtime *fakecri.Runtime
	mu      sync.Mutex
	calls   []string
}

func newStopping(t *testing.T) *stopping {
	t.Helper()
	dir, err := os.MkdirTemp("", "kf-") // not the test's own: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // of a test's own folder nothing is lost
	s := &stopping{runtime: fakecri.New()}
	s.runtime.AddContainer(
		&fakecri.Container{ContainerStatus: runtimeapi.ContainerStatus{Id: "m", State: runtimeapi.ContainerState_CONTAINER_RUNNING}},
	)
	socket := filepath.Join(dir, "c.sock")
	if err := s.runtime.Serve(socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.runtime.Away)
	set := cri.NewSet([]string{socket})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = set.Start(ctx) }) // it never fails
	t.Cleanup(func() { cancel(); running.Wait() })
	<-set.Found()
	s.restarts = newRestarts(ctx, worker.Config{Runtimes: set, Events: clientrecord.NewFakeRecorder(99), Now: time.Now})
	return s
}

func (s *stopping) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *stopping) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

func hooked(p *corev1.Pod) {
	grace := int64(7)
	p.Spec.TerminationGracePeriodSeconds = &grace
	p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
		PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}},
	}
}

// TestHooksRunBeforeRestarts: a container is stopped once its hook has run, and neither twice, whatever becomes of the Pod meanwhile.
func TestHooksRunBeforeRestarts(t *testing.T) {
	s := newStopping(t)
	running, end := make(chan struct{}), make(chan struct{})
	s.runtime.OnExec = func(_ context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		s.note("hook " + request.Cmd[0])
		close(running)
		<-end
		return &runtimeapi.ExecSyncResponse{}, nil
	}
	stopped := make(chan int64, 9)
	s.runtime.OnStop = func(id string, seconds int64) error {
		s.note("stop " + id)
		stopped <- seconds
		return nil
	}
	p := testPod(hooked)
	ids := []string{"containerd://m"}
	s.stop(t.Context(), p, ids)
	<-running
	s.stop(t.Context(), p, ids)
	s.stop(t.Context(), p, nil) // the update is taken back
	s.forget(client.ObjectKeyFromObject(p))
	s.stop(t.Context(), p, ids) // and made again
	s.stop(t.Context(), p, nil)
	close(end)
	if seconds := <-stopped; seconds != 7 {
		t.Errorf("the container had %d s to end, want the 7 of its Pod", seconds)
	}
	if diff := cmp.Diff([]string{"hook drain", "stop m"}, s.noted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		s.restarts.mu.Lock()
		left := len(s.pods)
		s.restarts.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a Pod that asks for nothing is remembered")
		}
	}
}

// TestWhatIsTakenBackInTimeIsNotStopped: containers wait for each other to be stopped, and an update may be taken back meanwhile.
func TestWhatIsTakenBackInTimeIsNotStopped(t *testing.T) {
	s := newStopping(t)
	if err := s.slots.Acquire(t.Context(), maxParallelStops); err != nil {
		t.Fatal(err)
	}
	p, key := testPod(hooked), client.ObjectKeyFromObject(testPod())
	s.stop(t.Context(), p, []string{"containerd://m"})
	s.stop(t.Context(), p, nil) // it is taken back
	s.slots.Release(maxParallelStops)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		s.restarts.mu.Lock()
		left := len(s.pods[key])
		s.restarts.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it is remembered")
		}
	}
	if stops := s.runtime.Stops(); len(stops) > 0 {
		t.Errorf("it is stopped all the same: %v", stops)
	}
}

// TestOnlyMetadataIsRemembered: what a container has from Secrets is nobody's business here.
func TestOnlyMetadataIsRemembered(t *testing.T) {
	s := newStopping(t)
	s.runtime.AddContainer(&fakecri.Container{
		ContainerStatus: runtimeapi.ContainerStatus{Id: "m", Annotations: map[string]string{"io.kubernetes.container.hash": "6cf18e95"}},
		Info:            map[string]string{"info": `{"runtimeSpec":{"process":{"env":["TIER=gold","PASSWORD=hunter2"]}}}`},
	})
	p := testPod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{Key: "password"},
		}})
	})
	w, known := &reconciler{Config: s.Config, restarts: s.restarts}, &record{}
	if err := w.askFor(t.Context(), p, containers(p)[0], known); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"TIER": "gold"}, known.fact.Environment); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHooksThatFailAndThatTakeLong(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		fails error
		want  int64
	}{
		"it takes a while": {1200 * time.Millisecond, nil, 6},
		"it fails":         {0, errors.New("no such file"), 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStopping(t)
			s.runtime.OnExec = func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
				time.Sleep(tc.takes)
				return &runtimeapi.ExecSyncResponse{}, tc.fails
			}
			stopped := make(chan int64, 1)
			s.runtime.OnStop = func(_ string, seconds int64) error {
				stopped <- seconds
				return nil
			}
			s.stop(t.Context(), testPod(hooked), []string{"containerd://m"})
			if got := <-stopped; got != tc.want {
				t.Errorf("the container had %d s to end, want %d", got, tc.want)
			}
		})
	}
}

// TestContainersOfWhichTheRuntimeDoesNotTell: they are asked for a few times, some seconds apart, and then given up with an event.
func TestContainersOfWhichTheRuntimeDoesNotTell(t *testing.T) {
	s := newStopping(t) // its container has no hash
	p := testPod(func(p *corev1.Pod) {
		p.Namespace, p.Spec.Containers, p.Status.ContainerStatuses = "ns", p.Spec.Containers[:1], p.Status.ContainerStatuses[1:]
	})
	events := clientrecord.NewFakeRecorder(9)
	w := &reconciler{
		Config: worker.Config{Runtimes: s.Runtimes, Events: events, Now: time.Now}, limiter: rate.NewLimiter(1, 9),
		memory: map[types.NamespacedName]map[string]*record{}, restarts: s.restarts,
		client: fake.NewClientBuilder().WithObjects(p).WithStatusSubresource(p).Build(),
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}
	for try := 1; try < maxTries; try++ {
		result, err := w.Reconcile(t.Context(), request)
		if err != nil || result.RequeueAfter != retryInterval {
			t.Fatalf("try %d: %+v, %v", try, result, err)
		}
	}
	if len(events.Events) > 0 {
		t.Errorf("it is given up too early: %s", <-events.Events)
	}
	result, err := w.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter == retryInterval || len(events.Events) != 1 {
		t.Errorf("the last try: %+v, %v, %d events", result, err, len(events.Events))
	}
	if left := w.records(request.NamespacedName, nil); len(left) > 0 || len(w.memory[request.NamespacedName]) > 0 {
		t.Errorf("a container that is gone is remembered: %v", left)
	}
}
