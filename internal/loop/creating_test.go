package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// slowServer stores nothing. It answers the creation of the last Pod only when enough time has gone by since the first patch.
type slowServer struct {
	last    string
	mu      sync.Mutex
	patches []string
	patched chan struct{}
}

func (s *slowServer) Create(ctx context.Context, object plan.Object) error {
	if object.GetName() != s.last {
		return nil
	}
	select {
	case <-s.patched:
		time.Sleep(3 * creatingInterval)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return errors.New("no Pod was patched while others were created")
	}
}

func (s *slowServer) Patch(_ context.Context, object plan.Object, subresource string, _ types.PatchType, _ []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	object.SetLabels(map[string]string{"state": "normal"}) // as a server that takes labels with a status does
	if s.patches = append(s.patches, object.GetName()+" "+subresource); len(s.patches) == 1 {
		close(s.patched)
	}
	return nil
}

func (s *slowServer) Delete(context.Context, plan.Object, metav1.Preconditions) (string, error) {
	return "", errors.New("nothing is to be deleted")
}

func (s *slowServer) Read(context.Context, plan.Object) error {
	return errors.New("nothing is to be read")
}

// opening is the write that lets a Pod become ready; while names what it tests.
func opening(name, while string) plan.Action {
	before := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"state": "new"}},
	}
	before.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	after := before.DeepCopy()
	after.Labels["state"] = "normal"
	after.Status.Conditions = append(after.Status.Conditions, corev1.PodCondition{Type: "Gate", Status: corev1.ConditionTrue})
	return plan.Action{Verb: plan.UpdateStatus, Concern: plan.Settle, Before: before, After: after, While: while}
}

// creating plans as minCreates creations as have WhileCreating asked.
func creating(b *plan.Builder) plan.Plan {
	for i := range minCreates {
		b.Do(
			plan.Action{
				Verb:    plan.Create,
				Concern: plan.Scale,
				After:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i)}},
			},
		)
	}
	return b.Plan()
}

func newLoop() (*Loop[*corev1.ConfigMap, int, any], *slowServer) {
	server := &slowServer{last: fmt.Sprint(minCreates - 1), patched: make(chan struct{})}
	return New(Kind[*corev1.ConfigMap, int, any]{
		Read:          func(context.Context, Reads, *corev1.ConfigMap) (int, error) { return 0, nil },
		WhileCreating: func(int) plan.Plan { return plan.Plan{} },
	}, Runtime{Executor: &apply.Executor{Config: apply.Config{
		Writer: server, Scheme: clientgoscheme.Scheme, Events: record.NewFakeRecorder(100), Parallel: 8, Now: time.Now,
		Seen: func(context.Context, schema.GroupVersionKind) (string, error) { return "1", nil },
	}}}, observe.Reader{}, observe.Reader{}), server
}

func TestNewPodsAreOpenedWhileOthersAreCreated(t *testing.T) {
	b := plan.For("a pass")
	b.Do(opening("settled-by-the-pass", "state"))
	l, server := newLoop()
	l.WhileCreating = func(int) plan.Plan {
		b := plan.For("meanwhile")
		b.Do(opening("new", "state"))
		b.Do(opening("settled-by-the-pass", "state"))
		b.Do(opening("tests-nothing", ""))
		b.Do(opening("goes-on", "state"), opening("goes-on", "state"))
		return b.Plan()
	}
	outcome := l.run(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "owner"}}, creating(b))
	if err := outcome.Err(); err != nil {
		t.Fatal(err)
	}
	// One of both is patched by the pass itself, and the other, once, beside it.
	if diff := cmp.Diff([]string{"settled-by-the-pass status", "new status"}, server.patches); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
	if want := minCreates + 2; len(outcome.Results) != want {
		t.Errorf("the outcome has %d results, want %d", len(outcome.Results), want)
	}
}

func TestAPanicBesideAPassIsOneOfThePass(t *testing.T) {
	l, server := newLoop()
	l.Read = func(context.Context, Reads, *corev1.ConfigMap) (int, error) {
		close(server.patched) // the pass may end
		panic("a bug")
	}
	defer func() {
		if recover() == nil {
			t.Error("the pass has not heard of the panic")
		}
	}()
	l.run(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "owner"}}, creating(plan.For("a pass")))
}
