package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// tasksOf returns tasks for tags of jobs, each with its namespace: "a/1".
func tasksOf(names ...string) []Task {
	out := make([]Task, 0, len(names))
	for _, name := range names {
		namespace, tag, _ := strings.Cut(name, "/")
		out = append(out, Task{
			Round: Round{Repository: namespace, Tag: tag},
			Spec:  v1beta1.ImageTagSpec{OwnerReferences: []corev1.ObjectReference{{Namespace: namespace}}},
		})
	}
	return out
}

// TestNamespacesTakeTurns: the many images of one namespace delay the image of another by one pull at most.
func TestNamespacesTakeTurns(t *testing.T) {
	g := &gate{open: make(chan struct{}), there: map[string]bool{}}
	r := newRounds(t.Context(), puller{
		runtime:     func() (images, error) { return g, nil },
		credentials: func(context.Context, Task) ([]registry.Credentials, error) { return nil, nil },
		now:         time.Now, sleep: func(context.Context, time.Duration) {},
	}, 1, func() {})
	all := tasksOf("greedy/1", "greedy/2", "greedy/3", "greedy/4", "modest/1", "modest/2")
	r.follow(all)
	for i := range all {
		until(t, "one is pulled", func() bool { return g.asked() == i+1 })
		g.open <- struct{}{}
	}
	var order []string
	for _, p := range g.pulls {
		order = append(order, p.Image)
	}
	want := []string{"greedy:1", "modest:1", "greedy:2", "modest:2", "greedy:3", "greedy:4"}
	if !slices.Equal(order, want) {
		t.Errorf("pulled in the order %v, want %v", order, want)
	}
}

// refusing is a runtime whose registry refuses the images of one repository.
type refusing struct {
	*gate
	repository string
}

func (r refusing) PullImage(ctx context.Context, p cri.Pull) error {
	if strings.HasPrefix(p.Image, r.repository+":") {
		return errors.New("503 Service Unavailable")
	}
	return r.gate.PullImage(ctx, p)
}

// TestASlotIsFreeBetweenAttempts: a pull that waits to try again holds nobody up.
func TestASlotIsFreeBetweenAttempts(t *testing.T) {
	g := &gate{open: make(chan struct{}), there: map[string]bool{}}
	close(g.open)
	r := newRounds(t.Context(), puller{
		runtime:     func() (images, error) { return refusing{g, "broken"}, nil },
		credentials: func(context.Context, Task) ([]registry.Credentials, error) { return nil, nil },
		now:         time.Now, sleep: func(ctx context.Context, _ time.Duration) { <-ctx.Done() },
	}, 1, func() {})
	r.follow(tasksOf("broken/1", "good/1"))
	until(t, "the other is pulled", func() bool { return g.asked() == 1 })
	r.follow(nil)
	until(t, "no slot is lost", func() bool {
		r.turns.mu.Lock()
		defer r.turns.mu.Unlock()
		return len(r.turns.held)+len(r.turns.waiting) == 0
	})
}

// TestANamespaceWithoutASlotGetsOne: a namespace whose pulls hang keeps one slot, and gives back the others to who has waited.
func TestANamespaceWithoutASlotGetsOne(t *testing.T) {
	turns := newTurns(2)
	var greedy []*turn
	for range 4 {
		asked, _ := turns.request("greedy")
		greedy = append(greedy, asked)
	}
	modest, granted := turns.request("modest")
	another, _ := turns.request("another")
	if granted {
		t.Fatal("there is a slot too many")
	}
	yields := func() (out []bool) {
		for _, g := range greedy {
			select {
			case <-g.yield:
				out = append(out, true)
			default:
				out = append(out, false)
			}
		}
		return out
	}
	turns.demand(greedy[2])
	if got := yields(); slices.Contains(got, true) {
		t.Errorf("slots that yield to their own namespace: %v", got)
	}
	turns.demand(modest)
	turns.demand(another)
	if got := fmt.Sprint(yields()); got != "[false true false false]" {
		t.Errorf("slots that yield: %s, want the one that was granted last", got)
	}
	turns.release(greedy[1])
	select {
	case <-modest.granted:
	default:
		t.Error("the slot goes to somebody else")
	}
	turns.demand(another)
	if got := fmt.Sprint(yields()); got != "[false true false false]" {
		t.Errorf("slots that yield: %s, want none of a namespace that has one", got)
	}
}

// TestAPullThatYieldsGoesOnLater: it costs no attempt.
func TestAPullThatYieldsGoesOnLater(t *testing.T) {
	r := &fakeRuntime{now: time.Unix(0, 0), present: map[string]string{}, answers: []error{nil}}
	yield, none := make(chan struct{}), int32(0)
	close(yield)
	hangs := true
	p := puller{
		runtime: func() (images, error) { return r, nil },
		credentials: func(ctx context.Context, _ Task) ([]registry.Credentials, error) {
			if hangs {
				hangs = false
				<-ctx.Done()
				return nil, errors.New("canceled")
			}
			return nil, nil
		},
		now: func() time.Time { return r.now },
	}
	task := Task{Round: Round{Repository: "nginx", Tag: "1"}, Spec: v1beta1.ImageTagSpec{PullPolicy: &v1beta1.ImageTagPullPolicy{BackoffLimit: &none}}}
	r.answers = []error{context.Canceled, nil}
	id, err := p.run(t.Context(), round{
		task: func() Task { return task }, failed: func(string) {},
		yield: func() <-chan struct{} { return yield },
		pause: func(context.Context, time.Duration) { yield = nil },
	})
	if err != nil || id != "sha256:1" {
		t.Errorf("run() = %q, %v", id, err)
	}
}
