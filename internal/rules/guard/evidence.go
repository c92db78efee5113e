package guard

// gains are how much of the old Pods' successes a bad release turns into failures, in the alternatives that the test averages over.
func gains() []float64 { return []float64{0.25, 0.9} }

// evidence tells whether the product of the factors of all updated Pods has been enough at any of them. The first Pod is compared
// with a quarter of the old ones, the next with a quarter of the rest, and so on: the first Pods weigh most, so that few prove a release
// that fails altogether, and enough is left for one that fails at times.
func evidence(updated, old []bool) (enough bool) {
	products := make([]float64, len(gains()))
	for i := range products {
		products[i] = 1
	}
	seen, failed := 0.0, 0.0
	for _, bad := range updated {
		size := (len(old) + 3) / 4
		block := old[:size]
		old = old[size:]
		a := min(max((failed+0.02)/(seen+1), 0.01), 0.9) // from earlier blocks alone
		last := 0.0
		for i, gain := range gains() {
			products[i] *= factor(bad, block, a, a+(1-a)*gain)
			last += products[i] / float64(len(products))
		}
		for _, f := range block {
			seen++
			if f {
				failed++
			}
		}
		enough = enough || last >= 1/ErrorRate
	}
	return enough
}

// factor returns how many times more likely a block is if updated Pods fail with b and old ones with a than if all fail with the same rate.
func factor(bad bool, block []bool, a, b float64) float64 {
	n := float64(len(block))
	c := (n*a + b) / (n + 1)
	out := likelihood(bad, b) / likelihood(bad, c)
	for _, f := range block {
		out *= likelihood(f, a) / likelihood(f, c)
	}
	return out
}

func likelihood(failed bool, rate float64) float64 {
	if failed {
		return rate
	}
	return 1 - rate
}
