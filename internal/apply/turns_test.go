package apply

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// load is many owners whose counts change at a steady pace for a while, each of which is looked at when its count changes and when a wait is over.
type load struct {
	owners int
	// every is the time between two changes of one owner's count.
	every, lasts time.Duration
}

// loadOutcome is what came of a load.
type loadOutcome struct {
	// during are the writes until the last change, after those from then on.
	during, after int
	// latest is how long after the last change the last count was true, and oldest the longest time that a count was not.
	latest, oldest time.Duration
}

func (r load) run(queue *turns) loadOutcome {
	const tick = 10 * time.Millisecond
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type state struct {
		count, stored int
		look, since   time.Time
		turn          turn
	}
	states := make([]state, r.owners)
	var out loadOutcome
	for now := began; now.Before(began.Add(r.lasts + time.Minute)); now = now.Add(tick) {
		at := now.Sub(began)
		for i := range states {
			s := &states[i]
			phase := (r.every * time.Duration(i) / time.Duration(r.owners)).Truncate(tick)
			changed := at < r.lasts && at >= phase && (at-phase)%r.every == 0
			if changed {
				if s.count == s.stored {
					s.since = now
				}
				s.count++
			}
			if s.count == s.stored || !changed && (s.look.IsZero() || now.Before(s.look)) {
				continue
			}
			if wait := queue.wait(&s.turn, strconv.Itoa(s.count), now); wait > 0 {
				s.look = now.Add(wait)
				continue
			}
			s.stored, s.look, s.turn = s.count, time.Time{}, turn{}
			out.oldest = max(out.oldest, now.Sub(s.since))
			if at < r.lasts {
				out.during++
			} else {
				out.after++
				out.latest = max(out.latest, at-r.lasts)
			}
		}
	}
	return out
}

func TestCountsTakeTurnsUnderLoad(t *testing.T) {
	const rate = 30
	cases := map[string]struct {
		load load
		// mostWrites bounds the writes during the load, and oldest the age of a count.
		mostWrites int
		oldest     time.Duration
	}{
		"few changes are written as they come": {
			load: load{owners: 20, every: time.Second, lasts: 30 * time.Second}, mostWrites: 600, oldest: 0,
		},
		"of many no more than the rate and those that came before it was seen": {
			load: load{owners: 300, every: time.Second, lasts: 30 * time.Second}, mostWrites: 30*rate + rate, oldest: 11 * time.Second,
		},
		"one that changes all the time takes no turns from others": {
			load:       load{owners: 90, every: 100 * time.Millisecond, lasts: 30 * time.Second},
			mostWrites: 30*rate + rate, oldest: 4 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.load.run(newTurns(rate))
			if got.during > tc.mostWrites {
				t.Errorf("%d writes while it lasted, want %d at most", got.during, tc.mostWrites)
			}
			if got.latest > 2*time.Second {
				t.Errorf("the last count was true %s after the last change", got.latest)
			}
			if got.oldest > tc.oldest {
				t.Errorf("a count was untrue for %s, want %s at most", got.oldest, tc.oldest)
			}
			if tc.mostWrites == 600 && got.during != 600 {
				t.Errorf("%d writes, want each of 600 changes to be written", got.during)
			}
		})
	}
}

// TestUnderLoadOnlyNewsIsNotDelayed: a newer spec and the first time that all is done with it are written whatever else goes on; that all is done
// again is not.
func TestUnderLoadOnlyNewsIsNotDelayed(t *testing.T) {
	b := newBench(t)
	statuses := b.statuses(policy{PerSecond: 10, Final: func(set *v1beta1.CloneSet) bool { return set.Status.ReadyReplicas == 5 }})
	for range 20 {
		statuses.turns.wait(&turn{}, "changed", b.cluster.Now())
	}
	steps := []struct {
		name    string
		change  func(*v1beta1.CloneSetStatus)
		written bool
	}{
		{"a count", func(s *v1beta1.CloneSetStatus) { s.ReadyReplicas = 1 }, false},
		{"all is done", func(s *v1beta1.CloneSetStatus) { s.ReadyReplicas = 5 }, true},
		{"one more has come", func(s *v1beta1.CloneSetStatus) { s.ReadyReplicas = 4 }, false},
		{"a newer spec", func(s *v1beta1.CloneSetStatus) { s.ReadyReplicas, s.ObservedGeneration = 4, 7 }, true},
		{"all is done again", func(s *v1beta1.CloneSetStatus) { s.ReadyReplicas = 5 }, false},
	}
	for _, step := range steps {
		before := b.ownerNow()
		after := before.DeepCopy()
		step.change(&after.Status)
		wait, err := statuses.Write(t.Context(), before, after.Status)
		if err != nil {
			t.Fatal(err)
		}
		if written := wait == 0; written != step.written {
			t.Errorf("%s: written %t, wait %s", step.name, written, wait)
		}
	}
	b.cluster.Sleep(maxTurnWait)
	before := b.ownerNow()
	after := before.DeepCopy()
	after.Status.ReadyReplicas = 5
	if wait, err := statuses.Write(t.Context(), before, after.Status); err != nil || wait != 0 || b.ownerNow().Status.ReadyReplicas != 5 {
		t.Errorf("when it is quiet again: wait %s, error %v, %d ready", wait, err, b.ownerNow().Status.ReadyReplicas)
	}
}
