package spread

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

const (
	// costStep is between the costs of two subsets.
	costStep = 100
	// lightest is the cost of a Pod in a subset with a weight that has none yet, nearly; weightStep is of how much it differs that there
	// are more: no two weights make quotients that are closer to each other.
	lightest, weightStep = 1_000_000_000, 10_000
)

// CostIn returns the deletion cost of a Pod of the latest version in a subset, up to its limit, that has so many others before it: the last
// ones that came are the first to go. Those up to the floor are worth more than all others. It is 0 where the workload heeds none.
//
// Example: with three subsets, of which the second one has a floor of 1, costs are 300; 500 and then 200; 100.
func (f Fill) CostIn(subset, before int) int32 {
	n := len(f.Limits)
	switch isFloor := before < f.floor(subset); {
	case !f.HasCosts:
		return 0
	case isFloor && f.Weights != nil:
		return lightest + int32(costStep*(n-subset))
	case isFloor:
		return int32(costStep * (2*n - subset))
	case f.Weights != nil:
		return int32(max(1, lightest-(2*before+1)*weightStep/int(f.Weights[subset])))
	}
	return int32(costStep * (n - subset))
}

// Costs returns the deletion cost of each active Pod, by which the workload deletes those first that came last by the order of filling.
// Pods above the limit of their subset go before all that are not, and before these go Pods that are in no subset. Of versions other than
// the latest those in the first subset go first, so that a rollout frees it for the new ones.
//
// Example: with three subsets, limits of 10, 10 and none, and 20 Pods in each, ten of the first cost 300 and ten -100, of the second 200
// and -200, and of the third all 100.
func Costs(s *v1beta1.WorkloadSpread, f Fill, pods []*corev1.Pod, latest string) map[*corev1.Pod]int32 {
	kind := TargetOf(s).GroupKind
	out := map[*corev1.Pod]int32{}
	for at, group := range byPlace(s, pods, latest) {
		slices.SortFunc(group, func(a, b *corev1.Pod) int { // the last ones are the first to go
			return cmp.Or(-order.FalseFirst(!isSurplus(a), !isSurplus(b)),
				-order.FalseFirst(VersionOf(kind, a) == latest, VersionOf(kind, b) == latest), -order.ByWorth(a, b))
		})
		fill, index := f, IndexOf(s, at.Subset)
		worth := index
		if at.Version != latest && f.Weights == nil {
			fill.Floors, worth = nil, len(f.Limits)-1-index
		}
		costs := make([]int32, len(group))
		for before := range costs {
			switch {
			case index < 0:
				costs[before] = -costStep * int32(len(f.Limits)+1)
			case !f.hasRoom(index, before):
				costs[before] = -costStep * int32(worth+1)
			default:
				costs[before] = fill.CostIn(worth, before)
			}
		}
		share(out, group, costs)
	}
	return out
}

// share gives the costs to the Pods. Each keeps its own if that is among them, so that no more Pods than necessary are written; the others
// get the rest, in the same order.
func share(out map[*corev1.Pod]int32, pods []*corev1.Pod, costs []int32) {
	left := map[int32]int{}
	for _, cost := range costs {
		left[cost]++
	}
	var others []*corev1.Pod
	for _, p := range pods {
		if cost, ok := CostOf(p); ok && left[cost] > 0 {
			left[cost]--
			out[p] = cost
			continue
		}
		others = append(others, p)
	}
	for _, cost := range costs {
		if left[cost] > 0 {
			left[cost]--
			out[others[0]], others = cost, others[1:]
		}
	}
}

// byPlace returns the active Pods by where they count: those that are in no subset have none. Where versions count only during a surge, all
// count in the latest one.
func byPlace(s *v1beta1.WorkloadSpread, pods []*corev1.Pod, latest string) map[Place][]*corev1.Pod {
	kind := TargetOf(s).GroupKind
	out := map[Place][]*corev1.Pod{}
	for _, p := range pods {
		if !pod.IsActive(p) {
			continue
		}
		at := Place{Version: VersionOf(kind, p)}
		if SurgesOnly(kind) {
			at.Version = latest
		}
		if m, ok := MatchedOf(p); ok && m.Name == s.Name && IndexOf(s, m.Subset) >= 0 {
			at.Subset = m.Subset
		}
		out[at] = append(out[at], p)
	}
	return out
}

// Surplus returns the active Pods of the latest version that are above the limits of their subsets, the first to go first.
func Surplus(s *v1beta1.WorkloadSpread, f Fill, owned []*corev1.Pod, latest string) []*corev1.Pod {
	var out []*corev1.Pod
	kind, costs := TargetOf(s).GroupKind, Costs(s, f, owned, latest)
	for p, cost := range costs {
		m, _ := MatchedOf(p)
		if cost < 0 && IndexOf(s, m.Subset) >= 0 && (SurgesOnly(kind) || VersionOf(kind, p) == latest) {
			out = append(out, p)
		}
	}
	sortByCost(out, costs)
	return out
}

// Returning returns the active Pods of the latest version that would be in an earlier subset if they were created now, the first to go
// first. Total is the number of Pods that the workload is to have.
func Returning(s *v1beta1.WorkloadSpread, f Fill, owned []*corev1.Pod, latest Latest) []*corev1.Pod {
	var out []*corev1.Pod
	kind, costs := TargetOf(s).GroupKind, Costs(s, f, owned, latest.Version)
	for p := range costs {
		m, _ := MatchedOf(p)
		at := IndexOf(s, m.Subset)
		if m.Name != s.Name || at < 0 || !SurgesOnly(kind) && VersionOf(kind, p) != latest.Version {
			continue
		}
		has := Counts(s, VersionOf(kind, p), latest.Total)
		has[at]--
		if to := f.Next(has, Open(s)); to >= 0 && to < at {
			out = append(out, p)
		}
	}
	sortByCost(out, costs)
	return out
}

// Latest is the version of the workload's present template, and how many Pods the workload is to have.
type Latest struct {
	Version string
	Total   int32
}

func sortByCost(pods []*corev1.Pod, costs map[*corev1.Pod]int32) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(costs[a], costs[b]), order.ByWorth(a, b), cmp.Compare(a.Name, b.Name))
	})
}

// Tally writes into the status how many of the active Pods of the workload are in a subset and in none, and how many are above the limits.
//
// Example: with limits of 2 and none, and 3, 4 and 1 Pods in the first subset, in the second and in none, 7 are assigned, 1 is unassigned
// and 1 is overflow.
func Tally(s *v1beta1.WorkloadSpread, limits []int32, owned []*corev1.Pod) {
	status := &s.Status
	status.Assigned, status.Unassigned, status.Overflow = 0, 0, 0
	for at, group := range byPlace(s, owned, v1beta1.VersionIgnored) {
		index, n := IndexOf(s, at.Subset), int32(len(group))
		if index < 0 {
			status.Unassigned += n
			continue
		}
		status.Assigned += n
		if limits[index] != Unlimited {
			status.Overflow += max(0, n-limits[index])
		}
	}
}

// isSurplus reports whether a Pod has been told to go first already, which it stays: costs must not change with every probe.
func isSurplus(p *corev1.Pod) bool {
	cost, ok := CostOf(p)
	return ok && cost < 0
}

// CostOf returns the deletion cost that a Pod has; false if it has none that can be read.
func CostOf(p *corev1.Pod) (int32, bool) {
	cost, err := strconv.ParseInt(p.Annotations[corev1.PodDeletionCost], 10, 32)
	return int32(cost), err == nil
}
