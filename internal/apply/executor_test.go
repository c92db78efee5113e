package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

func TestRunWritesWhatAPlanSays(t *testing.T) {
	b := newBench(t)
	p := b.stored(t, "a")
	updating := withPhase(p, corev1.PodRunning, "updating")
	other := b.stored(t, "b")
	done := b.run(t,
		plan.Stage{{
			{Verb: plan.UpdateStatus, Before: p, After: updating},
			{Verb: plan.Update, Before: updating, After: withImage(updating, "app:v2")},
		}, {{Verb: plan.Delete, Before: other}}},
		plan.Stage{create(b.pod("c"))},
	)
	if err := done.Err(); err != nil || done.Conflict() {
		t.Fatalf("got error %v, conflict %v", err, done.Conflict())
	}
	got := b.now("a")
	if diff := cmp.Diff([]string{"app:v2", "updating", "Running"}, []string{got.Spec.Containers[0].Image, got.Labels["state"], string(got.Status.Phase)}); diff != "" {
		t.Errorf("the Pod (-want +got):\n%s", diff)
	}
	if b.now("b") != nil || b.now("c") == nil {
		t.Errorf("deleted Pod is there: %v, created Pod is there: %v", b.now("b") != nil, b.now("c") != nil)
	}
	want := []string{
		`patch a status {"metadata":{"labels":{"state":"updating"},"resourceVersion":"3","uid":"uid-2"},"status":{"phase":"Running"}}`,
		`patch a  {"metadata":{"resourceVersion":"5","uid":"uid-2"},"spec":{"$setElementOrder/containers":[{"name":"app"}],"containers":[{"image":"app:v2","name":"app"}]}}`,
		"delete b",
		"create c",
	}
	if diff := cmp.Diff(want, b.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestRunStops(t *testing.T) {
	refuse := func(names ...string) func(string) error {
		return func(what string) error {
			for _, name := range names {
				if what == name {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, errors.New("exceeded quota"))
				}
			}
			return nil
		}
	}
	cases := map[string]struct {
		refuse []string
		stages func(*bench, *corev1.Pod) []plan.Stage
		want   []string
	}{
		"creates start with one, two, four, and a failed batch is the last": {
			refuse: []string{"create 2"},
			stages: func(b *bench, _ *corev1.Pod) []plan.Stage {
				return []plan.Stage{{create(b.pod("1")), create(b.pod("2")), create(b.pod("3")), create(b.pod("4")), create(b.pod("5"))}}
			},
			want: []string{"create 1", "create 2", "create 3"},
		},
		"when the first create fails, no other is tried": {
			refuse: []string{"create 1"},
			stages: func(b *bench, _ *corev1.Pod) []plan.Stage {
				return []plan.Stage{{create(b.pod("1")), create(b.pod("2")), create(b.pod("3"))}}
			},
			want: []string{"create 1"},
		},
		"a failure ends its chain and the stages after, not the other chains": {
			refuse: []string{"create claim"},
			stages: func(b *bench, p *corev1.Pod) []plan.Stage {
				return []plan.Stage{
					{append(create(b.pod("claim")), create(b.pod("pod"))...), {{Verb: plan.Delete, Before: p}}},
					{create(b.pod("later"))},
				}
			},
			want: []string{"delete a", "create claim"},
		},
		"an update that changes nothing is not written": {
			stages: func(_ *bench, p *corev1.Pod) []plan.Stage {
				return []plan.Stage{{{{Verb: plan.Update, Before: p, After: p.DeepCopy()}}}}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := b.stored(t, "a")
			b.before = refuse(tc.refuse...)
			done := b.run(t, tc.stages(b, p)...)
			if diff := cmp.Diff(tc.want, b.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if failed := done.Err() != nil; failed != (len(tc.refuse) > 0) {
				t.Errorf("got error %v", done.Err())
			}
		})
	}
}

func TestRunMeetsOthers(t *testing.T) {
	type result struct {
		Failed, Conflict bool
		Freshness        Freshness
		Taken            []string
	}
	cases := map[string]struct {
		prepare func(*testing.T, *bench) plan.Chain
		before  func(string) error
		want    result
	}{
		"an object that has changed meanwhile is left alone, which is no failure": {
			prepare: func(t *testing.T, b *bench) plan.Chain {
				p := b.stored(t, "a")
				simulate.Update(b.cluster, "kubelet", p, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
				return plan.Chain{{Verb: plan.Delete, Before: p}}
			},
			want: result{Conflict: true, Freshness: Fresh},
		},
		"a write that is right for any version goes through": {
			prepare: func(t *testing.T, b *bench) plan.Chain {
				p := b.stored(t, "a")
				simulate.Update(b.cluster, "kubelet", p, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
				return plan.Chain{{Verb: plan.Delete, Before: p, AnyVersion: true}}
			},
			want: result{Freshness: Stale},
		},
		"another object under the same name is left alone whatever the version": {
			prepare: func(t *testing.T, b *bench) plan.Chain {
				p := b.stored(t, "a")
				b.cluster.Delete("user", p)
				b.stored(t, "a")
				return plan.Chain{{Verb: plan.Delete, Before: p, AnyVersion: true}}
			},
			want: result{Conflict: true, Freshness: Fresh},
		},
		"what is gone already need not be deleted": {
			prepare: func(t *testing.T, b *bench) plan.Chain {
				p := b.stored(t, "a")
				b.cluster.Delete("user", p)
				return plan.Chain{{Verb: plan.Delete, Before: p}}
			},
			want: result{Freshness: Fresh},
		},
		"an object of ours that is there already is what was wanted": {
			prepare: func(t *testing.T, b *bench) plan.Chain {
				b.stored(t, "a")
				return create(b.pod("a"))
			},
			want: result{Freshness: Stale},
		},
		"an object of others that is there already is a failure, and its name is remembered": {
			prepare: func(t *testing.T, b *bench) plan.Chain {
				p := b.pod("a")
				p.OwnerReferences = nil
				if _, err := b.cluster.Create("user", p); err != nil {
					t.Fatal(err)
				}
				return create(b.pod("a"))
			},
			want: result{Failed: true, Freshness: Fresh, Taken: []string{"a"}},
		},
		"a write without an answer may have happened: the next look has to be live": {
			prepare: func(_ *testing.T, b *bench) plan.Chain { return create(b.pod("a")) },
			before:  func(string) error { return errors.New("connection reset by peer") },
			want:    result{Failed: true, Freshness: Unknown},
		},
		"so may one that took too long": {
			prepare: func(_ *testing.T, b *bench) plan.Chain { return create(b.pod("a")) },
			before:  func(string) error { return apierrors.NewTimeoutError("too long", 0) },
			want:    result{Failed: true, Freshness: Unknown},
		},
		"one that was refused has not": {
			prepare: func(_ *testing.T, b *bench) plan.Chain { return create(b.pod("a")) },
			before: func(string) error {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota"))
			},
			want: result{Failed: true, Freshness: Fresh},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			chain := tc.prepare(t, b)
			b.before = tc.before
			done := b.run(t, plan.Stage{chain})
			fresh, err := b.Freshness(t.Context(), b.owner)
			if err != nil {
				t.Fatal(err)
			}
			got := result{Failed: done.Err() != nil, Conflict: done.Conflict(), Freshness: fresh, Taken: b.TakenNames(b.owner.UID)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\nerror: %v", diff, done.Err())
			}
		})
	}
}

func TestRunInParallelWritesAll(t *testing.T) {
	b := newBench(t)
	b.Parallel = 8
	var turn sync.Mutex
	b.Writer = oneAtATime{b.Writer, &turn}
	var stage plan.Stage
	for i := range 100 {
		stage = append(stage, create(b.pod(fmt.Sprintf("p-%d", i))))
	}
	done := b.run(t, stage)
	if done.Err() != nil || len(done.Results) != 100 {
		t.Fatalf("got %d results, error %v", len(done.Results), done.Err())
	}
	for i, result := range done.Results {
		if want := fmt.Sprintf("p-%d", i); result.Object.GetName() != want {
			t.Errorf("result %d is of %s, not of %s", i, result.Object.GetName(), want)
		}
	}
}

// oneAtATime guards the simulated cluster, which is for one goroutine.
type oneAtATime struct {
	Writer
	turn *sync.Mutex
}

func (o oneAtATime) Create(ctx context.Context, object plan.Object) error {
	o.turn.Lock()
	defer o.turn.Unlock()
	return o.Writer.Create(ctx, object)
}

func TestAPanicInOneWriteIsThePassesOwn(t *testing.T) {
	b := newBench(t)
	b.Parallel = 2
	b.before = func(string) error { panic("a bug") }
	defer func() {
		if cause := recover(); cause != "a bug" {
			t.Errorf("recovered %v in the goroutine of the pass", cause)
		}
	}()
	b.run(t, plan.Stage{create(b.pod("a"))})
	t.Error("the panic is lost")
}

func TestStatusWithoutMetadataTakesTwoWrites(t *testing.T) {
	b := newBench(t)
	b.Writer = statusOnly{b.Writer}
	p := b.stored(t, "a")
	done := b.run(t, plan.Stage{{{Verb: plan.UpdateStatus, Before: p, After: withPhase(p, corev1.PodRunning, "updating")}}})
	if err := done.Err(); err != nil {
		t.Fatal(err)
	}
	if got := b.now("a"); got.Labels["state"] != "updating" || got.Status.Phase != corev1.PodRunning {
		t.Errorf("stored: label %q, phase %s", got.Labels["state"], got.Status.Phase)
	}
	if len(b.writes) != 2 {
		t.Errorf("got writes %q, want two", b.writes)
	}
}

// statusOnly is a server that ignores metadata in writes to the status.
type statusOnly struct{ Writer }

func (s statusOnly) Patch(ctx context.Context, object plan.Object, subresource string, kind types.PatchType, patch []byte) error {
	if subresource == "status" {
		patch = []byte(`{"status":{"phase":"Running"}}`)
	}
	return s.Writer.Patch(ctx, object, subresource, kind, patch)
}

// TestOptionalWritesStopNothing: what is pulled ahead must not stand against the update that it is for.
func TestOptionalWritesStopNothing(t *testing.T) {
	b := newBench(t)
	b.before = func(what string) error {
		if what == "create spare" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, what, errors.New("exceeded quota"))
		}
		return nil
	}
	spare := create(b.pod("spare"))
	spare[0].Optional = true
	done := b.run(
		t,
		plan.Stage{append(spare, create(b.pod("after"))...), create(b.pod("1")), create(b.pod("2"))},
		plan.Stage{create(b.pod("later"))},
	)
	if diff := cmp.Diff([]string{"create spare", "create 1", "create 2", "create later"}, b.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if err := done.Err(); err != nil {
		t.Errorf("got error %v", err)
	}
}
