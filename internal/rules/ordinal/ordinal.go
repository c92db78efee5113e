// Package ordinal numbers the Pods of a StatefulSet: which ordinals are wanted, what the Pods are called, which of them are updated next,
// and at which revision a missing one comes back.
//
// A slot is a wanted ordinal. Slots are counted by position: with the ordinals 3 and 4 reserved, the ordinal 5 is at position 3. What the
// user limits in Pods, such as partition, is counted in positions.
package ordinal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
)

// interval is a run of ordinals; both ends belong to it.
type interval struct{ first, last int32 }

// Reserved is a set of ordinals that no Pod gets. It is kept in intervals: a range of two billion ordinals costs no more than one ordinal.
type Reserved struct {
	intervals []interval // sorted, and never touching each other
}

// EntryError says what is wrong with one entry of the list.
type EntryError struct {
	// Index is the place of the entry in the list.
	Index int
	// Why says what was read and what is wanted instead.
	Why string
}

// Error returns the problem in a line.
func (e *EntryError) Error() string {
	return fmt.Sprintf("reserveOrdinals[%d]: %s", e.Index, e.Why)
}

// Parse reads entries such as 7, "7" and "3-5". The error is an *EntryError.
func Parse(entries []intstr.IntOrString) (Reserved, error) {
	var all []interval
	for i, entry := range entries {
		one, why := parse(entry)
		if why != "" {
			return Reserved{}, &EntryError{Index: i, Why: why}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	var r Reserved
	for _, next := range all {
		if n := len(r.intervals); n > 0 && int64(next.first) <= int64(r.intervals[n-1].last)+1 {
			r.intervals[n-1].last = max(r.intervals[n-1].last, next.last)
			continue
		}
		r.intervals = append(r.intervals, next)
	}
	return r, nil
}

func parse(entry intstr.IntOrString) (interval, string) {
	if entry.Type == intstr.Int {
		if entry.IntVal < 0 {
			return interval{}, fmt.Sprintf("reserve ordinal is negative: %d", entry.IntVal)
		}
		return interval{entry.IntVal, entry.IntVal}, ""
	}
	first, last, isRange := strings.Cut(entry.StrVal, "-")
	if !isRange {
		last = first
	}
	from, ok := number(first)
	to, alsoOK := number(last)
	switch {
	case !ok || !alsoOK:
		return interval{}, fmt.Sprintf(
			"reserve ordinal is not a valid range: %q is neither a number nor a range such as \"3-5\"", entry.StrVal)
	case from > to:
		return interval{}, fmt.Sprintf("reserve ordinal is invalid: %q ends before it begins", entry.StrVal)
	}
	return interval{from, to}, ""
}

// number reads digits alone, without a sign.
func number(text string) (int32, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int32(n), err == nil
}

// Has reports whether an ordinal is reserved.
func (r Reserved) Has(n int32) bool {
	at, found := slices.BinarySearchFunc(r.intervals, n, func(i interval, n int32) int { return cmp.Compare(i.first, n) })
	return found || at > 0 && n <= r.intervals[at-1].last
}

// Size returns the number of reserved ordinals.
func (r Reserved) Size() int64 {
	var size int64
	for _, i := range r.intervals {
		size += int64(i.last) - int64(i.first) + 1
	}
	return size
}

// MostReplicas is the largest number of replicas that Slots numbers, so that a mistyped number does not cost all memory.
const MostReplicas = 1000000

// Slots returns the ordinals of so many replicas, ascending: they are counted from start, without those that are reserved. Four replicas
// from 2 on with 1 and 3 reserved are 2, 4, 5 and 6. There are fewer only where the numbers run out, or beyond MostReplicas.
func (r Reserved) Slots(start, replicas int32) []int32 {
	replicas = min(max(replicas, 0), MostReplicas)
	slots := make([]int32, 0, replicas)
	intervals := r.intervals
	for n := int64(start); len(slots) < int(replicas) && n <= math.MaxInt32; n++ {
		for len(intervals) > 0 && int64(intervals[0].last) < n {
			intervals = intervals[1:]
		}
		if len(intervals) > 0 && int64(intervals[0].first) <= n {
			n = int64(intervals[0].last)
			continue
		}
		slots = append(slots, int32(n))
	}
	return slots
}

// PodName returns the name of the Pod with an ordinal.
func PodName(set string, n int32) string {
	return set + "-" + strconv.Itoa(int(n))
}

// Split takes a Pod's name apart: web-3 is the Pod 3 of web. A name that does not end in a number is none of any StatefulSet, and neither
// is one with a leading zero: PodName would never make it.
func Split(pod string) (set string, n int32, ok bool) {
	dash := strings.LastIndexByte(pod, '-')
	if dash < 0 {
		return "", 0, false
	}
	n, ok = number(pod[dash+1:])
	if !ok || PodName(pod[:dash], n) != pod {
		return "", 0, false
	}
	return pod[:dash], n, true
}

// Slot is what an update needs to know of a slot.
type Slot struct {
	// Pod is nil where there is none.
	Pod *corev1.Pod
	// Updated means that the Pod is at the update revision, or may be taken for it.
	Updated bool
	// Leaving means that the Pod is being deleted.
	Leaving bool
}

// Strategy is what the user says of the order.
type Strategy struct {
	// Partition is the number of slots that stay at older revisions.
	Partition int
	// Unordered orders by Priority, instead of by ordinal from the highest down.
	Unordered bool
	Priority  *pub.UpdatePriorityStrategy
}

// Reach returns the positions of the slots that are to be at the update revision, the first to update first. Slots are in the order of
// their ordinals. With 9 slots and a partition of 5 it is the upper four: positions 8, 7, 6 and 5.
//
// Where the order is not that of ordinals, Pods that are updated or on their way out keep their places, so that a new Pod of a high
// priority does not let one more be updated. It fails on a selector that can't be read.
func Reach(slots []Slot, s Strategy) ([]int, error) {
	count := len(slots) - s.Partition
	if count <= 0 {
		return nil, nil
	}
	positions := make([]int, 0, len(slots))
	for i := len(slots) - 1; i >= 0; i-- {
		positions = append(positions, i)
	}
	if !s.Unordered {
		return positions[:count], nil
	}
	placed, err := unordered(slots, positions, s)
	if err != nil {
		return nil, err
	}
	return placed[:min(count, len(placed))], nil
}

// unordered returns first the positions that are updated, are on their way out, or come back at the update revision, and then those of the
// outdated Pods by their priority.
func unordered(slots []Slot, positions []int, s Strategy) ([]int, error) {
	old := AtCurrent(slots, s)
	var placed []int
	var outdated []*corev1.Pod
	at := map[*corev1.Pod]int{}
	for _, i := range positions {
		switch slot := slots[i]; {
		case slot.Pod == nil && old[i]:
		case slot.Pod == nil || slot.Updated || slot.Leaving:
			placed = append(placed, i)
		default:
			outdated = append(outdated, slot.Pod)
			at[slot.Pod] = i
		}
	}
	if err := order.ByPriority(outdated, s.Priority); err != nil {
		return nil, err
	}
	for _, p := range outdated {
		placed = append(placed, at[p])
	}
	return placed, nil
}

// AtCurrent says, for each position, whether a Pod that is created there is to be at the current revision; it means something only
// where there is none. An old Pod that is deleted comes back old, and a new one new: in the order of ordinals the position says which
// it was. Else as many come back old as are missing of the partition.
func AtCurrent(slots []Slot, s Strategy) []bool {
	current := make([]bool, len(slots))
	if !s.Unordered {
		for i := range min(max(s.Partition, 0), len(slots)) {
			current[i] = true
		}
		return current
	}
	old := 0
	for _, slot := range slots {
		if slot.Pod != nil && !slot.Updated {
			old++
		}
	}
	for i, slot := range slots {
		if slot.Pod == nil && old < s.Partition {
			current[i] = true
			old++
		}
	}
	return current
}

// Moved returns those of the given ordinals, which are not wanted, that are numbered below the last slot: each has given its place to a
// slot that is still to come, and stands in for it until then. The others are beyond the slots, because fewer are wanted.
func Moved(slots []int32, unwanted []int32) []int32 {
	if len(slots) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(unwanted), func(n int32) bool { return n > slots[len(slots)-1] })
}
