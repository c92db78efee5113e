// Package order decides which Pod comes first: in an update, those that serve least, then as the user's priorities say, then spread so
// that Pods of one label are not updated in one run, and before all those whose update has begun; in scaling in, the least valuable.
package order

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Strategy is what the user says of the order.
type Strategy struct {
	Priority *pub.UpdatePriorityStrategy
	Scatter  pub.UpdateScatterStrategy
}

// Sort returns the candidates in the order of their update; all are the active Pods of the workload, candidates included. It fails on a
// selector that can't be read.
func Sort(candidates, all []*corev1.Pod, s Strategy) ([]*corev1.Pod, error) {
	sorted := byWorth(candidates)
	if err := ByPriority(sorted, s.Priority); err != nil {
		return nil, err
	}
	return begunFirst(scatter(sorted, all, s.Scatter)), nil
}

// begunFirst returns the Pods that wait for the hook of their update before all others.
func begunFirst(pods []*corev1.Pod) []*corev1.Pod {
	var begun, others []*corev1.Pod
	for _, p := range pods {
		if pod.State(p) == pub.LifecycleStatePreparingUpdate {
			begun = append(begun, p)
		} else {
			others = append(others, p)
		}
	}
	return append(begun, others...)
}

// worth is what the loss of a Pod would cost, read once: sorting thousands of Pods compares each of them many times.
type worth struct {
	pod                *corev1.Pod
	scheduled, isReady bool
	phase              int
	// readySince and created are as of seconds.
	readySince, created int64
	restarts            int32
}

func worthOf(p *corev1.Pod) worth {
	return worth{
		pod: p, scheduled: pod.IsScheduled(p), isReady: pod.IsReady(p), phase: phaseRank(p), restarts: pod.MaxRestarts(p),
		readySince: seconds(pod.ReadySince(p)), created: seconds(p.CreationTimestamp.Time),
	}
}

// seconds returns a time in seconds, which is how exact stored times are. No time counts as the latest.
func seconds(at time.Time) int64 {
	if at.IsZero() {
		return math.MaxInt64
	}
	return at.Unix()
}

// byWorth returns the Pods in the order of ByWorth.
func byWorth(pods []*corev1.Pod) []*corev1.Pod {
	all := make([]worth, len(pods))
	places := make([]int, len(pods))
	for at, p := range pods {
		all[at], places[at] = worthOf(p), at
	}
	slices.SortFunc(places, func(a, b int) int {
		if by := all[a].compare(&all[b]); by != 0 {
			return by
		}
		return cmp.Compare(a, b) // Pods of two namespaces may have one name
	})
	out := make([]*corev1.Pod, len(pods))
	for at, place := range places {
		out[at] = pods[place]
	}
	return out
}

// ByWorth orders Pods by what their loss would cost, the least first: no node before a node, pending before unknown before running, not
// ready before ready, ready for a shorter time first, then more restarts, then younger.
func ByWorth(a, b *corev1.Pod) int {
	first, second := worthOf(a), worthOf(b)
	return first.compare(&second)
}

func (w *worth) compare(other *worth) int {
	if by := w.comparePhase(other); by != 0 {
		return by
	}
	if by := FalseFirst(w.isReady, other.isReady); by != 0 {
		return by
	}
	return w.compareAge(other)
}

// comparePhase orders Pods without a node before Pods with one, and then by phase.
func (w *worth) comparePhase(other *worth) int {
	return cmp.Or(FalseFirst(w.scheduled, other.scheduled), cmp.Compare(w.phase, other.phase))
}

func phaseRank(p *corev1.Pod) int {
	switch p.Status.Phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
	}
}

// compareAge orders Pods that are ready for a shorter time first, then those with more restarts, then the younger ones, and at last by
// name.
func (w *worth) compareAge(other *worth) int {
	if by := cmp.Compare(other.readySince, w.readySince); by != 0 {
		return by
	}
	if by := cmp.Compare(other.restarts, w.restarts); by != 0 {
		return by
	}
	if by := cmp.Compare(other.created, w.created); by != 0 {
		return by
	}
	return cmp.Compare(w.pod.Name, other.pod.Name)
}

// FalseFirst orders false before true.
func FalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// ByPriority sorts Pods, stably, by the priorities that the user gave to their labels; nil leaves them as they are. It fails on a selector
// that can't be read.
func ByPriority(pods []*corev1.Pod, s *pub.UpdatePriorityStrategy) error {
	switch {
	case s == nil:
		return nil
	case len(s.WeightPriority) > 0:
		return byWeight(pods, s.WeightPriority)
	case len(s.OrderPriority) > 0:
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
			levelA, placeA := level(a, s.OrderPriority)
			levelB, placeB := level(b, s.OrderPriority)
			return cmp.Or(cmp.Compare(levelA, levelB), cmp.Compare(placeB, placeA))
		})
	}
	return nil
}

func byWeight(pods []*corev1.Pod, terms []pub.UpdatePriorityWeightTerm) error {
	weights := make(map[*corev1.Pod]int64, len(pods))
	for i := range terms {
		selector, err := metav1.LabelSelectorAsSelector(&terms[i].MatchSelector)
		if err != nil {
			return fmt.Errorf("reading matchSelector %d of weightPriority: %w", i, err)
		}
		for _, p := range pods {
			if selector.Matches(labels.Set(p.Labels)) {
				weights[p] += int64(terms[i].Weight)
			}
		}
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(weights[b], weights[a]) })
	return nil
}

// level returns the index of the first key that the Pod carries, and the integer at the end of its value.
//
// Wire: a Pod with none of the keys is at level -1 and so goes before all others.
func level(p *corev1.Pod, terms []pub.UpdatePriorityOrderTerm) (int, int64) {
	for i, term := range terms {
		if value, ok := p.Labels[term.OrderedKey]; ok {
			return i, trailingInteger(value)
		}
	}
	return -1, 0
}

// trailingInteger returns 10 for "sts-10", and 0 for a text that does not end in digits. Label values have at most 63 characters; a number
// too large counts as the largest.
func trailingInteger(text string) int64 {
	start := len(text)
	for start > 0 && text[start-1] >= '0' && text[start-1] <= '9' {
		start--
	}
	n, _ := strconv.ParseInt(text[start:], 10, 64) // on overflow this is the largest number, on no digits 0
	return n
}
