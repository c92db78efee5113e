package ordinal

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
)

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

// Reach returns the positions of the slots that are to be at the update revision, the first to update first. Slots are in the order of their
// ordinals. With 9 slots and a partition of 5 it is the upper four: positions 8, 7, 6 and 5.
//
// Where the order is not that of ordinals, Pods that are updated or on their way out keep their places, so that a new Pod of a high priority
// does not let one more be updated. It fails on a selector that can't be read.
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

// AtCurrent says, for each position, whether a Pod that is created there is to be at the current revision; it means something only where there is
// none. An old Pod that is deleted comes back old, and a new one new: in the order of ordinals the position says which it was. Else as many come
// back old as are missing of the partition.
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

// Moved returns those of the given ordinals, which are not wanted, that are numbered below the last slot: each has given its place to a slot
// that is still to come, and stands in for it until then. The others are beyond the slots, because fewer are wanted.
func Moved(slots []int32, unwanted []int32) []int32 {
	if len(slots) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(unwanted), func(n int32) bool { return n > slots[len(slots)-1] })
}
