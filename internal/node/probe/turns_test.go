package probe

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

// hanging is a runtime in which the commands of Pods whose UID begins with "hung" take a minute, and others no time.
type hanging struct {
	container
	running, most atomic.Int64
}

func (h *hanging) Containers(_ context.Context, pod string) (map[string]*runtimeapi.Container, error) {
	return map[string]*runtimeapi.Container{"main": {Id: pod, State: runtimeapi.ContainerState_CONTAINER_RUNNING}}, nil
}

func (h *hanging) Exec(ctx context.Context, id string, _ []string, _ time.Duration) (cri.Output, error) {
	if id[:4] == "hung" {
		h.most.Store(max(h.most.Load(), h.running.Add(1)))
		defer h.running.Add(-1)
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
	}
	return cri.Output{}, ctx.Err()
}

// TestProbesThatHangDelayTheirNamespaceOnly: not all of them run at the same time, and the probe of another tenant runs at its period.
func TestProbesThatHangDelayTheirNamespaceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, reports := &hanging{}, 0
		s := newProbes(ctx, func() (runtime, error) { return r, nil }, func() { reports++ }, time.Now)
		n := &v1alpha1.NodePodProbe{}
		for i := range 300 {
			n.Spec.PodProbes = append(n.Spec.PodProbes, v1alpha1.PodProbe{
				Namespace: fmt.Sprint("tenant-", i%5), UID: fmt.Sprint("hung-", i), Probes: []v1alpha1.ContainerProbe{command(1)},
			})
		}
		n.Spec.PodProbes = append(n.Spec.PodProbes, v1alpha1.PodProbe{Namespace: "other", UID: "well", Probes: []v1alpha1.ContainerProbe{command(1)}})
		s.follow(n)
		time.Sleep(3 * time.Second)
		if got := r.most.Load(); got != maxRuns && got != maxRuns+1 {
			t.Errorf("%d probes run at the same time, want %d", got, maxRuns)
		}
		if state := s.results()[key{"well", "m#a"}]; state.State != v1alpha1.ProbeSucceeded {
			t.Errorf("the probe of another tenant says %+v", state)
		}
		time.Sleep(10 * time.Minute)
		for i := range 300 {
			if _, known := s.results()[key{fmt.Sprint("hung-", i), "m#a"}]; !known {
				t.Errorf("probe %d never ran", i)
			}
		}
		cancel()
		synctest.Wait()
	})
}

// TestTurnsGoRound: of those that wait, the namespace is next of which the fewest run.
func TestTurnsGoRound(t *testing.T) {
	turns := newTurns()
	for i := range maxRuns {
		if !turns.begin(t.Context(), fmt.Sprint("n", i%4)) {
			t.Fatal("it may not run")
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if turns.begin(over, "n0") {
		t.Error("one more runs of a namespace that has its share")
	}
	if !turns.begin(t.Context(), "new") {
		t.Error("a namespace of which none runs waits")
	}
	if turns.begin(over, "new") {
		t.Error("more run than may")
	}
	woken := make(chan string)
	for _, namespace := range []string{"n1", "new"} {
		go func() {
			turns.begin(t.Context(), namespace)
			woken <- namespace
		}()
	}
	for waiting := 0; waiting < 2; time.Sleep(time.Millisecond) {
		turns.mu.Lock()
		waiting = len(turns.waiting)
		turns.mu.Unlock()
	}
	turns.end("n1")
	turns.end("n1")
	if first := <-woken; first != "new" {
		t.Errorf("%s is next, which has more running", first)
	}
	turns.end("n1")
	<-woken
	for namespace, n := range turns.running {
		for range n {
			turns.end(namespace)
		}
	}
	if turns.total != 0 || len(turns.running) != 0 || len(turns.waiting) != 0 {
		t.Errorf("in the end %d run, of %v, and %v wait", turns.total, turns.running, turns.waiting)
	}
}
