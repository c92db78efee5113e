package apply

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

func TestRunEndsWhenTheTimeIsUp(t *testing.T) {
	patched := func(p *corev1.Pod) plan.Chain {
		updating := withPhase(p, corev1.PodRunning, "updating")
		return plan.Chain{
			{Verb: plan.UpdateStatus, Before: p, After: updating},
			{Verb: plan.Update, Before: updating, After: withImage(updating, "app:v2")},
		}
	}
	for name, tc := range map[string]struct {
		// takes is how long each write takes.
		takes  time.Duration
		stages func(b *bench, stored *corev1.Pod) []plan.Stage
		// writes is how many writes are made, and unfinished whether some are left.
		writes     int
		unfinished bool
	}{
		"creates": {
			takes: sliceLength / 2,
			stages: func(b *bench, _ *corev1.Pod) []plan.Stage {
				return []plan.Stage{{create(b.pod("1")), create(b.pod("2")), create(b.pod("3")), create(b.pod("4")), create(b.pod("5"))}}
			},
			writes: 2, unfinished: true,
		},
		"a chain that has begun is finished": {
			takes: sliceLength,
			stages: func(b *bench, stored *corev1.Pod) []plan.Stage {
				return []plan.Stage{{patched(stored)}, {create(b.pod("later"))}}
			},
			writes: 2, unfinished: true,
		},
		"the first chain of a pass begins, however long it takes": {
			takes: 10 * sliceLength,
			stages: func(b *bench, _ *corev1.Pod) []plan.Stage {
				return []plan.Stage{{create(b.pod("1")), create(b.pod("2"))}}
			},
			writes: 1, unfinished: true,
		},
		"the last chain ends late": {
			takes: sliceLength,
			stages: func(b *bench, _ *corev1.Pod) []plan.Stage {
				return []plan.Stage{{create(b.pod("1"))}}
			},
			writes: 1,
		},
		"all is written within the time": {
			takes: sliceLength / 10,
			stages: func(b *bench, stored *corev1.Pod) []plan.Stage {
				return []plan.Stage{{patched(stored)}, {create(b.pod("1")), create(b.pod("2"))}}
			},
			writes: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			stored := b.stored(t, "a")
			b.before = func(string) error {
				b.cluster.Sleep(tc.takes)
				return nil
			}
			done := b.run(t, tc.stages(b, stored)...)
			if err := done.Err(); err != nil {
				t.Fatal(err)
			}
			if len(b.writes) != tc.writes || done.Unfinished != tc.unfinished {
				t.Errorf("got %d writes, unfinished %v, want %d, %v: %q", len(b.writes), done.Unfinished, tc.writes, tc.unfinished, b.writes)
			}
		})
	}
}

// TestAPlanOfWhichMoreIsDue: the next pass follows at once, unless this one has got nowhere.
func TestAPlanOfWhichMoreIsDue(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal    error
		optional   bool
		unfinished bool
	}{
		"written":              {unfinished: true},
		"refused":              {refusal: errors.New("no")},
		"an optional, refused": {refusal: errors.New("no"), optional: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.before = func(string) error { return tc.refusal }
			chain := create(b.pod("1"))
			chain[0].Optional = tc.optional
			due := plan.Plan{Stages: []plan.Stage{{chain}}, More: true}
			if done := b.Run(t.Context(), b.owner, due); done.Unfinished != tc.unfinished {
				t.Errorf("unfinished is %t, want %t; error %v", done.Unfinished, tc.unfinished, done.Err())
			}
		})
	}
}

// slowDeletions is an API server that deletes Pods, and is slow at it.
type slowDeletions struct {
	Writer
	*busyServer
	deleted atomic.Int64
}

func (s *slowDeletions) Delete(context.Context, plan.Object, metav1.Preconditions) (string, error) {
	s.write()
	s.deleted.Add(1)
	return "", nil
}

// TestAPassIsShort: also on an API server that is slower than everything that the limit of concurrency has learned, a pass ends soon, and
// those after it go on.
func TestAPassIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 600
		server := &slowDeletions{busyServer: newBusyServer(20*time.Millisecond, 4)}
		b := newBench(t)
		b.Executor = &Executor{Config: Config{
			Writer: server, Scheme: clientgoscheme.Scheme, Events: record.NewFakeRecorder(pods), Parallel: 128, Now: time.Now,
			Limit: NewLimit(time.Now), Seen: func(context.Context, schema.GroupVersionKind) (string, error) { return "1", nil },
		}}
		var left plan.Stage
		for n := range pods {
			left = append(left, plan.Chain{{Verb: plan.Delete, Before: b.stored(t, fmt.Sprint(n))}})
		}
		passes := 0
		for unfinished := true; unfinished; passes++ {
			began := time.Now()
			done := b.run(t, left)
			if err := done.Err(); err != nil || len(done.Results) == 0 {
				t.Fatalf("pass %d: %d results, error %v", passes, len(done.Results), err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("pass %d took %v", passes, took)
			}
			left, unfinished = left[len(done.Results):], done.Unfinished
		}
		if deleted := server.deleted.Load(); deleted != pods || passes < 3 {
			t.Errorf("%d of %d Pods were deleted, in %d passes", deleted, pods, passes)
		}
	})
}
