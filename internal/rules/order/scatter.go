package order

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

// scatter spreads the Pods of each term over the candidates, the terms with the most of them first.
func scatter(candidates, all []*corev1.Pod, s pub.UpdateScatterStrategy) []*corev1.Pod {
	terms := slices.DeleteFunc(slices.Clone(s), func(t pub.UpdateScatterTerm) bool { return countMatches(candidates, t) == 0 })
	slices.SortStableFunc(terms, func(a, b pub.UpdateScatterTerm) int {
		return cmp.Compare(countMatches(candidates, b), countMatches(candidates, a))
	})
	for _, term := range terms {
		candidates = scatterOne(candidates, all, term)
	}
	return candidates
}

func matches(p *corev1.Pod, t pub.UpdateScatterTerm) bool {
	value, ok := p.Labels[t.Key]
	return ok && value == t.Value
}

func countMatches(pods []*corev1.Pod, t pub.UpdateScatterTerm) int {
	return countTrue(pods, func(p *corev1.Pod) bool { return matches(p, t) })
}

func countTrue[T any](all []T, is func(T) bool) int {
	n := 0
	for _, one := range all {
		if is(one) {
			n++
		}
	}
	return n
}

// scatterOne spreads the matching Pods over the update. The order of the whole workload decides, so that it stays the same while Pods are
// updated and drop out of the candidates; where Pods were updated in another order meanwhile, what is left is spread anew.
//
// Example: of 10 Pods 3 match; they go 1st, 6th and 10th.
func scatterOne(candidates, all []*corev1.Pod, t pub.UpdateScatterTerm) []*corev1.Pod {
	var matching, others []*corev1.Pod
	for _, p := range candidates {
		if matches(p, t) {
			matching = append(matching, p)
		} else {
			others = append(others, p)
		}
	}
	allMatching := countMatches(all, t)
	places := spread(allMatching, len(all)-allMatching)
	if done := len(all) - len(candidates); done >= 0 && places != nil {
		left := places[done:]
		if countTrue(left, func(isMatching bool) bool { return isMatching }) == len(matching) {
			return arrange(left, matching, others)
		}
	}
	if places = spread(len(matching), len(others)); places == nil {
		return candidates
	}
	return arrange(places, matching, others)
}

// arrange puts matching Pods into the places that are true, and the others into the rest, each in their own order.
func arrange(places []bool, matching, others []*corev1.Pod) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(places))
	for _, isMatching := range places {
		from := &others
		if isMatching {
			from = &matching
		}
		out = append(out, (*from)[0])
		*from = (*from)[1:]
	}
	return out
}

// spread returns the places of matching Pods among others: groups of both alternate, and the last matching one ends the list. It is nil
// where there are too few of either to be spread.
func spread(matching, others int) []bool {
	if matching <= 1 || others <= 1 {
		return nil
	}
	places := make([]bool, 0, matching+others)
	matching--                      // the last one ends the list
	groups := min(matching, others) // as many as the smaller side has Pods
	share := func(n int) int { return max(1, int(math.Round(float64(n)/float64(groups)))) }
	shareMatching, shareOthers := share(matching), share(others)
	add := func(left *int, n int, isMatching bool) {
		n = min(n, *left)
		places = append(places, slices.Repeat([]bool{isMatching}, n)...)
		*left -= n
	}
	for range groups {
		add(&matching, shareMatching, true)
		add(&others, shareOthers, false)
	}
	add(&matching, matching, true)
	add(&others, others, false)
	return append(places, true)
}
