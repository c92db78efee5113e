package guard

import (
	"math/rand/v2"
	"testing"
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
