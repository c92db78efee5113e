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

// costStep is between the costs of two subsets.
const costStep = 100

// CostIn returns the deletion cost of the Pods of the latest version in a subset, up to its limit.
func CostIn(s *v1beta1.WorkloadSpread, subset int) int32 {
	return costStep * int32(len(s.Spec.Subsets)-subset)
}

// Costs returns the deletion cost of each active Pod, by which the workload deletes those of the last subset first. Pods above the limit of
// their subset go before all that are not, and before these go Pods that are in no subset. Of versions other than the latest those in
// the first subset go first, so that a rollout frees it for the new ones.
//
// Example: with three subsets, limits of 10, 10 and none, and 20 Pods in each, ten of the first cost 300 and ten -100, of the second 200
// and -200, and of the third all 100.
func Costs(s *v1beta1.WorkloadSpread, limits []int32, pods []*corev1.Pod, latest string) map[*corev1.Pod]int32 {
	kind := TargetOf(s).GroupKind
	out := map[*corev1.Pod]int32{}
	for at, group := range byPlace(s, pods, latest) {
		index := IndexOf(s, at.Subset)
		if index < 0 {
			for _, p := range group {
				out[p] = -costStep * int32(len(s.Spec.Subsets)+1)
			}
			continue
		}
		limit := limits[index]
		if at.Version != latest {
			index = len(s.Spec.Subsets) - 1 - index
		}
		slices.SortFunc(group, func(a, b *corev1.Pod) int { // the last ones are the first to go
			return cmp.Or(-order.FalseFirst(!isSurplus(a), !isSurplus(b)),
				-order.FalseFirst(VersionOf(kind, a) == latest, VersionOf(kind, b) == latest), -order.ByWorth(a, b))
		})
		for i, p := range group {
			if out[p] = CostIn(s, index); limit != Unlimited && i >= int(limit) {
				out[p] = -costStep * int32(index+1)
			}
		}
	}
	return out
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
func Surplus(s *v1beta1.WorkloadSpread, limits []int32, owned []*corev1.Pod, latest string) []*corev1.Pod {
	var out []*corev1.Pod
	kind, costs := TargetOf(s).GroupKind, Costs(s, limits, owned, latest)
	for p, cost := range costs {
		m, _ := MatchedOf(p)
		if cost < 0 && IndexOf(s, m.Subset) >= 0 && (SurgesOnly(kind) || VersionOf(kind, p) == latest) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(costs[a], costs[b]), order.ByWorth(a, b), cmp.Compare(a.Name, b.Name))
	})
	return out
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
