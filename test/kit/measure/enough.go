package measure

import "math"

// Enough returns how many requests it takes to tell whether a share of them goes one way. If each goes there with probability share,
// independently of the others, then the share that is counted is off by more than tolerance with a probability of at most risk; if it
// goes there with a probability that is off by twice the tolerance, then the count is within it with a probability of at most risk.
//
// Both are Chernoff's bound, 2·exp(-n·d), with the relative entropy d, so they hold for every n and are no approximation.
// Enough(0.5, 0.03, 1e-4) is 5,499, which 200 requests a second reach in 28 seconds; Enough(0.05, 0.03, 1e-4) is 1,972. A data plane that
// takes backends in turn is off by less.
func Enough(share, tolerance, risk float64) int {
	least := math.Inf(1)
	for _, side := range []float64{-1, 1} {
		edge, wrong := share+side*tolerance, share+2*side*tolerance
		if edge < 0 || edge > 1 {
			continue // nothing can be counted there
		}
		least = min(least, entropy(edge, share))
		if wrong >= 0 && wrong <= 1 {
			least = min(least, entropy(edge, wrong))
		}
	}
	return int(math.Ceil(math.Log(2/risk) / least))
}

// entropy is that of a coin with probability p relative to one with probability q; infinite if q can't give p.
func entropy(p, q float64) float64 {
	part := func(p, q float64) float64 {
		if p == 0 {
			return 0
		}
		return p * math.Log(p/q)
	}
	return part(p, q) + part(1-p, 1-q)
}
