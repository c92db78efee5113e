package pull

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// gate is a runtime whose pulls wait until they are let through.
type gate struct {
	open chan struct{}

	mu    sync.Mutex
	there map[string]bool
	pulls []cri.Pull
	ended int
}

func (g *gate) ImageID(_ context.Context, image string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.there[image] {
		return "sha256:1", nil
	}
	return "", nil
}

func (g *gate) PullImage(ctx context.Context, p cri.Pull) error {
	g.mu.Lock()
	g.pulls = append(g.pulls, p)
	g.mu.Unlock()
	select {
	case <-g.open:
	case <-ctx.Done():
		g.mu.Lock()
		g.ended++
		g.mu.Unlock()
		return ctx.Err()
	}
	p.Annotations["a runtime's own"] = p.Image // what a request holds is its own
	g.mu.Lock()
	defer g.mu.Unlock()
	g.there[p.Image] = true
	return nil
}

func (g *gate) asked() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.pulls)
}

func newGate(t *testing.T) (*gate, *rounds) {
	t.Helper()
	g := &gate{open: make(chan struct{}), there: map[string]bool{}}
	return g, newRounds(t.Context(), puller{
		runtime:     func() (images, error) { return g, nil },
		credentials: func(context.Context, Task) ([]registry.Credentials, error) { return nil, nil },
		now:         time.Now, sleep: func(context.Context, time.Duration) {},
	}, 0, func() {})
}

func tags(sandbox *v1beta1.SandboxConfig, names ...string) []Task {
	out := make([]Task, 0, len(names))
	for _, name := range names {
		out = append(out, Task{Round: Round{Repository: "nginx", Tag: name}, Sandbox: sandbox})
	}
	return out
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it never is", what)
		}
	}
}

// TestTagsOfOneRepositoryAtTheSameTime: what they share stays as it is, though the NodeImage is looked at all the time. The race detector is what
// this is for.
func TestTagsOfOneRepositoryAtTheSameTime(t *testing.T) {
	g, r := newGate(t)
	sandbox := &v1beta1.SandboxConfig{Annotations: map[string]string{"a": "b"}}
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprint("v", i)
	}
	if !r.follow(tags(sandbox, names...)) {
		t.Error("nothing is begun")
	}
	until(t, "all are pulled", func() bool {
		r.follow(tags(sandbox, names...))
		return g.asked() == len(names)
	})
	close(g.open)
	until(t, "all have ended", func() bool {
		r.follow(tags(sandbox, names...))
		return !underWay(r.statuses())
	})
	for round, s := range r.statuses() {
		if s.Phase != v1beta1.ImagePhaseSucceeded || s.Progress != 100 {
			t.Errorf("%s has come to %+v", round.Image(), s)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "b"}, sandbox.Annotations); diff != "" {
		t.Errorf("the annotations of the NodeImage (-want +got):\n%s", diff)
	}
}

// TestATagThatIsTakenOffWhileItIsPulled: the pull ends, and nothing more is said of it.
func TestATagThatIsTakenOffWhileItIsPulled(t *testing.T) {
	g, r := newGate(t)
	r.follow(tags(nil, "a", "b"))
	until(t, "both are pulled", func() bool { return g.asked() == 2 })
	r.follow(tags(nil, "b"))
	until(t, "one is ended", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.ended == 1 })
	for round := range r.statuses() {
		if round.Tag != "b" {
			t.Errorf("there is still something to say of %s", round.Image())
		}
	}
	close(g.open)
	until(t, "the other has ended", func() bool { return !underWay(r.statuses()) })
	if g.asked() != 2 {
		t.Errorf("%d pulls were asked for, want 2", g.asked())
	}
}
