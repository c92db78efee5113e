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
	n := 0
	for _, p := range pods {
		if matches(p, t) {
			n++
		}
	}
	return n
}

// scatterOne spreads the matching Pods: groups of them alternate with groups of the others, and the last one ends the list. The sizes of the
// groups follow all Pods of the workload for as long as the candidates allow, so that the order stays the same while Pods are updated and
// drop out of the candidates.
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
	if len(matching) <= 1 || len(others) <= 1 {
		return candidates
	}
	last := matching[len(matching)-1]
	matching = matching[:len(matching)-1]
	m, u := len(matching), len(others)
	allMatching := countMatches(all, t) - 1
	allOthers := len(all) - allMatching - 1

	out := make([]*corev1.Pod, 0, len(candidates))
	take := func(from *[]*corev1.Pod, n int) {
		n = max(0, min(n, len(*from)))
		out = append(out, (*from)[:n]...)
		*from = (*from)[n:]
	}
	groups, sizeM, sizeU := groupSizes(m, u)
	if allMatching > 0 && allOthers*m < u*allMatching {
		_, sizeM, sizeU = groupSizes(allMatching, allOthers)
		groups = min(m/sizeM, u/sizeU)
		take(&others, u-groups*sizeU)
	}
	for range groups {
		take(&matching, sizeM)
		take(&others, sizeU)
	}
	out = append(append(out, matching...), others...)
	return append(out, last)
}

// groupSizes splits a and b Pods into as many groups as the smaller of both has Pods, and returns the size of each one's groups.
func groupSizes(a, b int) (groups, sizeA, sizeB int) {
	groups = min(a, b)
	if groups == 0 {
		return 0, 1, 1
	}
	share := func(n int) int { return max(1, int(math.Round(float64(n)/float64(groups)))) }
	return groups, share(a), share(b)
}
