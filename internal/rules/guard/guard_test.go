package guard

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const releases = 10000

// draw returns the outcomes of Pods that fail at a rate.
func draw(r *rand.Rand, n int, rate float64) []bool {
	out := make([]bool, n)
	for i := range out {
		out[i] = r.Float64() < rate
	}
	return out
}

// TestGoodReleasesAreLetThrough counts the good releases that the guard stops, among 10,000 of each kind: less than one in a hundred,
// however often Pods fail anyway, asked after every Pod.
func TestGoodReleasesAreLetThrough(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, pods := range []int{3, 10, 100, 1000} {
		for _, rate := range []float64{0, 0.001, 0.01, 0.03, 0.1, 0.3, 0.5, 0.9} {
			stopped := 0
			for range releases {
				if _, bad := evidence(draw(r, min(pods, 200), rate), draw(r, pods, rate)); bad {
					stopped++
				}
			}
			t.Logf("%d Pods of which %.1f %% fail anyway: %.2f %% of good releases stopped", pods, 100*rate, 100*float64(stopped)/releases)
			if share := float64(stopped) / releases; share > ErrorRate {
				t.Errorf("%d Pods of which %.1f %% fail anyway: %.2f %% of good releases stopped", pods, 100*rate, 100*share)
			}
		}
	}
}

// TestBadReleasesAreStopped counts the Pods that a bad release costs.
func TestBadReleasesAreStopped(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, tc := range []struct {
		pods      int
		old, bad  float64
		caught    float64 // share, at least
		afterMost float64 // Pods, on average
	}{
		{10, 0, 1, 1, 3},
		{100, 0, 1, 1, 2},
		{100, 0.01, 1, 0.99, 2.5},
		{100, 0.01, 0.5, 0.88, 6},
		{1000, 0.01, 0.3, 0.85, 9},
	} {
		caught, after := 0, 0
		for range releases {
			updated, old := draw(r, min(tc.pods, 50), tc.bad), draw(r, tc.pods, tc.old)
			for n := 1; n <= len(updated); n++ {
				if _, bad := evidence(updated[:n], old); bad {
					caught, after = caught+1, after+n
					break
				}
			}
		}
		share, mean := float64(caught)/releases, float64(after)/float64(max(caught, 1))
		t.Logf("%d Pods of which %.0f %% fail and %.0f %% failed before: %.1f %% caught, after %.1f Pods", tc.pods, 100*tc.bad, 100*tc.old, 100*share, mean)
		if share < tc.caught || mean > tc.afterMost {
			t.Errorf("%d Pods of which %.0f %% fail: %.1f %% caught, after %.1f Pods; want %.1f %% after %.1f", tc.pods, 100*tc.bad, 100*share, mean, 100*tc.caught, tc.afterMost)
		}
	}
}

// TestAFactorGainsNothingFromEqualPods adds up all outcomes of a block: this is what the error rate rests on.
func TestAFactorGainsNothingFromEqualPods(t *testing.T) {
	for _, size := range []int{0, 1, 2, 5, 8} {
		for _, a := range []float64{0.01, 0.2, 0.6} {
			for _, b := range []float64{0.3, 0.7, 0.98} {
				for _, rate := range []float64{0, 0.01, 0.2, 0.5, 0.99, 1} {
					if b < a {
						continue
					}
					mean := 0.0
					for bits := range 1 << (size + 1) {
						bad, block, p := bits&1 == 1, make([]bool, size), likelihood(bits&1 == 1, rate)
						for i := range block {
							block[i] = bits>>(i+1)&1 == 1
							p *= likelihood(block[i], rate)
						}
						mean += p * factor(bad, block, a, b)
					}
					if mean > 1+1e-9 {
						t.Errorf("block of %d, a %v, b %v, true rate %v: mean %v", size, a, b, rate, mean)
					}
				}
			}
		}
	}
}

func TestWhatCountsAsAFailure(t *testing.T) {
	at := time.Unix(1e9, 0)
	after := at.Add
	limits := Limits{Now: after(10 * time.Minute), Begun: at, Window: 5 * time.Minute, ToReady: time.Minute}
	for name, tc := range map[string]struct {
		pod  Pod
		want string
	}{
		"ready at once":            {Pod{Created: at, ReadyAt: after(time.Second), Ready: true}, ""},
		"not ready yet":            {Pod{Created: after(595 * time.Second)}, ""},
		"not ready for long":       {Pod{Created: at}, "it was not ready within 1m0s"},
		"ready late":               {Pod{Created: at, ReadyAt: after(2 * time.Minute), Ready: true}, "it was not ready within 1m0s"},
		"not ready any more":       {Pod{Created: at, ReadyAt: after(time.Second)}, "it was ready and is not any more"},
		"a crash":                  {Pod{Created: at, ReadyAt: after(time.Second), Ready: true, ExitCode: 137, ExitedAt: after(time.Minute), Restarts: 1}, "a container exited with code 137"},
		"a restart with code 0":    {Pod{Created: at, ReadyAt: after(time.Second), Ready: true, ExitedAt: after(time.Minute), Restarts: 2}, "its containers restarted 2 times"},
		"a crash after the window": {Pod{Created: at, ReadyAt: after(time.Second), Ready: true, ExitCode: 1, ExitedAt: after(6 * time.Minute), Restarts: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := limits.updatedFailed(tc.pod); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	for name, tc := range map[string]struct {
		pod  Pod
		want bool
	}{
		"ready":                    {Pod{ReadyAt: at}, false},
		"never ready":              {Pod{}, true},
		"a restart before":         {Pod{ReadyAt: at, ExitedAt: after(-time.Minute)}, true},
		"a restart long before":    {Pod{ReadyAt: at, ExitedAt: after(-time.Hour)}, false},
		"a restart in the release": {Pod{ReadyAt: at, ExitedAt: after(time.Minute)}, false},
	} {
		t.Run("an old Pod, "+name, func(t *testing.T) {
			if got := limits.oldFailed(tc.pod); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheGuardSaysWhy(t *testing.T) {
	at := time.Unix(1e9, 0)
	var old, updated []Pod
	for i := range 10 {
		old = append(old, Pod{Name: fmt.Sprint("old-", i), Created: at, ReadyAt: at.Add(20 * time.Second), Ready: true})
	}
	begun := at.Add(time.Hour)
	for i := range 3 {
		updated = append(updated, Pod{Name: fmt.Sprint("new-", i), Created: begun, ExitCode: 1, ExitedAt: begun.Add(time.Second), Restarts: 1})
	}
	limits := Limits{Now: begun.Add(time.Minute), Begun: begun, Window: 5 * time.Minute, ToReady: ToReady(old)}
	if limits.ToReady != time.Minute {
		t.Errorf("Pods may take %s to be ready, want 1m0s", limits.ToReady)
	}
	if v := Judge(updated[:1], old, limits); v.Bad {
		t.Errorf("one Pod proves it: %+v", v)
	}
	v := Judge(updated, old, limits)
	if want := "3 of 3 updated Pods failed, and 0 of 10 old ones; Pod new-0: a container exited with code 1"; !v.Bad || v.Message != want {
		t.Errorf("%+v, want %q", v, want)
	}
	if v := Judge(old, old, Limits{Now: begun, Begun: begun, ToReady: time.Minute}); v.Bad || strings.TrimSpace(v.Message) != "" {
		t.Errorf("Pods that do well: %+v", v)
	}
}
