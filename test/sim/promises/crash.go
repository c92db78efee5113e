package promises

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"

	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// rollouts is the number of rollouts that CrashAnywhere tries if KRUISE_SEEDS does not say it.
const rollouts = 12

// CrashAnywhere has the controller crash at each write of a rollout, once before the write and once after it, and fails the test where a
// promise is broken, or the rollout does not come to its end. A rollout with n writes is tried 2n times.
func (s Suite) CrashAnywhere(t *testing.T) {
	t.Helper()
	first, last := int64(0), int64(rollouts)
	if seeds, ok := number(t, "KRUISE_SEEDS"); ok {
		last = seeds
	}
	if seed, ok := number(t, "KRUISE_SEED"); ok {
		first, last = seed, seed+1
	}
	var next, crashes atomic.Int64
	next.Store(first)
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for seed := next.Add(1) - 1; seed < last && !t.Failed(); seed = next.Add(1) - 1 {
				tried, problem := s.crashIn(t.Context(), seed)
				crashes.Add(tried)
				if problem != "" {
					t.Errorf("KRUISE_SEED=%d: %s", seed, problem)
				}
			}
		})
	}
	running.Wait()
	t.Logf("%d crashes in %d rollouts", crashes.Load(), last-first)
}

// BreakByCrash expects the mistake that the suite makes to show in CrashAnywhere as a problem that contains the text.
func (s Suite) BreakByCrash(t *testing.T, text string) {
	t.Helper()
	for seed := range int64(rollouts) {
		if _, problem := s.crashIn(t.Context(), seed); strings.Contains(problem, text) && strings.Contains(problem, "a crash") {
			return
		}
	}
	t.Errorf("crashes in %d rollouts do not show it as %q", rollouts, text)
}

// crashIn has the controller crash at each write of the rollout of a seed. It returns how often that was, and what went wrong.
func (s Suite) crashIn(ctx context.Context, seed int64) (tried int64, problem string) {
	reference := s.World(seed)
	if problems := reference.rollOut(ctx, simulate.CrashPoint{}); problems != nil {
		return 0, strings.Join(problems, "\n")
	}
	for write := 1; write <= reference.Rig.Writes; write++ {
		for _, at := range []simulate.CrashPoint{{Write: write}, {Write: write, After: true}} {
			w := s.World(seed)
			problems := w.rollOut(ctx, at)
			if w.Rig.Crashes != 1 {
				problems = append(problems, fmt.Sprintf("the controller crashed %d times, want 1", w.Rig.Crashes))
			}
			if problems != nil {
				return tried, fmt.Sprintf("a crash at %+v of %d writes: %s", at, reference.Rig.Writes, strings.Join(problems, "\n"))
			}
			tried++
		}
	}
	return tried, ""
}

// rollOut lets the workload come to rest, gives it another template, has the controller crash at a write from then on, and returns what
// went wrong. In every second world, caches lag behind and Pods fail of themselves meanwhile.
func (w *World) rollOut(ctx context.Context, at simulate.CrashPoint) []string {
	ctx = logr.NewContext(ctx, logr.Discard())
	w.Rig.Faults, w.Rig.User = simulate.Faults{}, func() {}
	w.Rig.Turmoil(ctx, 0)
	w.scenario.Relent()
	w.settle(ctx, "before the rollout: ")
	w.Rig.Writes, w.Rig.CrashAt = 0, at
	w.scenario.Rollout()
	if w.Seed%2 == 1 {
		w.Rig.Turmoil(ctx, turmoil)
		w.Rig.LandAll()
	}
	return w.end(ctx)
}
