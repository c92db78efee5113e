package loop

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// counted are owners, each with a count that its status is to tell, by name.
type counted struct {
	client.Reader
	owners  map[string]*corev1.Pod
	counts  map[string]int
	now     time.Time
	written []time.Time
}

func (c *counted) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.owners[key.Name].DeepCopyInto(into.(*corev1.Pod))
	return nil
}

func (c *counted) Create(context.Context, plan.Object) error { return nil }

func (c *counted) Patch(_ context.Context, object plan.Object, _ string, _ types.PatchType, _ []byte) error {
	c.written = append(c.written, c.now)
	c.owners[object.GetName()].Status.Message = fmt.Sprint(c.counts[object.GetName()])
	object.SetResourceVersion("2")
	return nil
}

func (c *counted) Delete(context.Context, plan.Object, metav1.Preconditions) (string, error) {
	return "", nil
}

func (c *counted) Read(context.Context, plan.Object) error { return nil }

// TestStatusesAreWrittenInTurn: owners that change together, whose passes are a second apart, still write at their turns, evenly.
func TestStatusesAreWrittenInTurn(t *testing.T) {
	const owners, rate, lasts = 100, 20, 10 * time.Second
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	world := &counted{owners: map[string]*corev1.Pod{}, counts: map[string]int{}, now: began}
	clock := func() time.Time { return world.now }
	executor := &apply.Executor{Config: apply.Config{
		Writer: world, Scheme: clientgoscheme.Scheme, Events: record.NewFakeRecorder(10), Parallel: 1,
		Seen: func(context.Context, schema.GroupVersionKind) (string, error) { return "2", nil }, Now: clock,
	}}
	l := New(Kind[*corev1.Pod, string, corev1.PodStatus]{
		Read: func(_ context.Context, _ Reads, p *corev1.Pod) (string, error) { return p.Name, nil },
		Plan: func(string) plan.Plan { return plan.Plan{} },
		Status: func(name string, _ plan.Plan, _ apply.Outcome) corev1.PodStatus {
			return corev1.PodStatus{Message: fmt.Sprint(world.counts[name])}
		},
		StatusOf:          func(p *corev1.Pod) *corev1.PodStatus { return &p.Status },
		MinInterval:       func(string) time.Duration { return time.Second },
		StatusesPerSecond: rate,
	}, Runtime{Executor: executor}, observe.Reader{Reader: world, Indexed: true}, observe.Reader{})
	looks := map[string]time.Time{}
	for ; world.now.Before(began.Add(lasts)); world.now = world.now.Add(time.Millisecond) {
		for i := range owners {
			name := fmt.Sprintf("owner-%d", i)
			if world.owners[name] == nil {
				world.owners[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"}}
			}
			changed := world.now.Sub(began)%time.Second == time.Duration(i)*time.Millisecond
			if changed {
				world.counts[name]++
			}
			if look := looks[name]; !changed && (look.IsZero() || world.now.Before(look)) {
				continue
			}
			delete(looks, name)
			result, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter > 0 {
				looks[name] = world.now.Add(result.RequeueAfter)
			}
		}
	}
	perTenth := map[int]int{}
	for _, at := range world.written {
		perTenth[int(at.Sub(began)/(100*time.Millisecond))]++
	}
	for tenth := range int(lasts / (100 * time.Millisecond)) {
		if wrote := perTenth[tenth]; tenth > 10 && wrote > 3 || wrote > 8 {
			t.Errorf("%d statuses were written in the tenth of a second %d, at a rate of %d a second", wrote, tenth, rate)
		}
	}
	if least := rate * int(lasts/time.Second) * 9 / 10; len(world.written) < least {
		t.Errorf("%d statuses were written, want at least %d", len(world.written), least)
	}
}
