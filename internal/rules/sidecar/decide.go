package sidecar

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
)

// Decision is which Pods are updated now, and why others are not.
type Decision struct {
	// Update are the Pods to update now, in order.
	Update []*PodStatus
	// NotUpgradable are the Pods that have to be created anew.
	NotUpgradable []*PodStatus
	// Waiting are the Pods that could be updated but for what PodStatus.Waits says.
	Waiting []*PodStatus
	// Kept are the Pods that the partition keeps as they are.
	Kept []*PodStatus
	// OverBudget are the Pods that wait for others to be in service again.
	OverBudget []*PodStatus
	// MaxUnavailable is the limit as a number, and Used how much of it is used up by Pods that are being updated.
	MaxUnavailable, Used int
	// Recheck is when a Pod stops waiting by time alone; zero for never.
	Recheck time.Duration
}

// Decide chooses the Pods to update. All are the Pods that hold the sidecars.
//
// Example: of 5 Pods in service and one not, partition 1 and maxUnavailable 2 let three be updated now: the broken one, which costs
// nothing, and two more; the last of the order is kept.
func (t Target) Decide(all []PodStatus) (Decision, error) {
	strategy := &t.Set.Spec.UpdateStrategy
	var d Decision
	var err error
	d.MaxUnavailable = 1
	if strategy.MaxUnavailable != nil {
		if d.MaxUnavailable, err = budget.Scaled(strategy.MaxUnavailable, len(all), budget.Up); err != nil {
			return d, fmt.Errorf("reading maxUnavailable: %w", err)
		}
	}
	kept, err := budget.Partition(strategy.Partition, len(all))
	if err != nil {
		return d, fmt.Errorf("reading partition: %w", err)
	}
	candidates := d.sort(all)
	if candidates, err = t.inOrder(candidates, all); err != nil {
		return d, err
	}
	old := 0
	for i := range all {
		if !all[i].Updated && all[i].Selected {
			old++
		}
	}
	// Pods that can't be updated stay behind anyway, and count as kept.
	kept = min(max(kept-(old-len(candidates)), 0), len(candidates))
	candidates, d.Kept = candidates[:len(candidates)-kept], candidates[len(candidates)-kept:]
	d.Used = used(all, candidates)
	d.take(candidates)
	return d, nil
}

// sort finds the Pods that could be updated.
func (d *Decision) sort(all []PodStatus) []*PodStatus {
	var candidates []*PodStatus
	for i := range all {
		s := &all[i]
		switch {
		case s.Updated || !s.Selected:
		case !s.Upgradable:
			d.NotUpgradable = append(d.NotUpgradable, s)
		case s.Waits != "":
			d.Waiting = append(d.Waiting, s)
			if s.Recheck > 0 && (d.Recheck == 0 || s.Recheck < d.Recheck) {
				d.Recheck = s.Recheck
			}
		default:
			candidates = append(candidates, s)
		}
	}
	return candidates
}

// inOrder returns the candidates in the order of their update.
func (t Target) inOrder(candidates []*PodStatus, all []PodStatus) ([]*PodStatus, error) {
	byPod := make(map[*corev1.Pod]*PodStatus, len(candidates))
	pods := make([]*corev1.Pod, 0, len(candidates))
	for _, s := range candidates {
		byPod[s.Pod] = s
		pods = append(pods, s.Pod)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	whole := make([]*corev1.Pod, 0, len(all))
	for i := range all {
		whole = append(whole, all[i].Pod)
	}
	strategy := &t.Set.Spec.UpdateStrategy
	sorted, err := order.Sort(pods, whole, order.Strategy{
		Priority: strategy.PriorityStrategy, Scatter: everyValue(strategy.ScatterStrategy, whole),
	})
	if err != nil {
		return nil, err
	}
	out := make([]*PodStatus, 0, len(sorted))
	for _, p := range sorted {
		out = append(out, byPod[p])
	}
	return out, nil
}

// everyValue replaces a term with the value * by one term for each value that the Pods have.
func everyValue(scatter pub.UpdateScatterStrategy, pods []*corev1.Pod) pub.UpdateScatterStrategy {
	var out pub.UpdateScatterStrategy
	for _, term := range scatter {
		if term.Value != "*" {
			out = append(out, term)
			continue
		}
		var values []string
		for _, p := range pods {
			if value, ok := p.Labels[term.Key]; ok {
				values = append(values, value)
			}
		}
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			out = append(out, pub.UpdateScatterTerm{Key: term.Key, Value: value})
		}
	}
	return out
}

// used counts the Pods that are out of service because of an update: updated ones, and those that an earlier update left so, as long as
// that is on its way or the next one is about to mend them.
func used(all []PodStatus, candidates []*PodStatus) int {
	next := make(map[*PodStatus]bool, len(candidates))
	for _, s := range candidates {
		next[s] = true
	}
	n := 0
	for i := range all {
		s := &all[i]
		early := s.begun && (s.Unsettled != "" || next[s])
		if !s.IsServing() && (s.Updated || early) {
			n++
		}
	}
	return n
}

// take walks the candidates in their order. One that is not ready costs nothing; the first that is and that the budget does not allow stops
// the walk.
func (d *Decision) take(candidates []*PodStatus) {
	spent := d.Used
	for i, s := range candidates {
		if s.Ready {
			if spent >= d.MaxUnavailable {
				d.OverBudget = candidates[i:]
				return
			}
			spent++
		}
		d.Update = append(d.Update, s)
	}
}
