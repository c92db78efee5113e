package spread

import (
	"slices"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Fill is how Pods fill the subsets: first each up to its floor, in order. Then they go to the first one that has room, or where subsets
// have weights to that which has the fewest Pods for its weight.
//
// Example: with floors of 1 and 2, and limits of 4 and none, five Pods go to the first subset, the second, the second, and then the first.
// With weights of 2 and 1, six Pods go to the first, the first, the second, and so on.
type Fill struct {
	// Limits are the most Pods of each subset; Unlimited for as many as there are.
	Limits []int32
	// Floors are the fewest, if there are as many; nil where no subset has one.
	Floors []int32
	// Weights are nil where subsets are filled in order.
	Weights []int32
	// HasCosts means that the workload deletes Pods of a lower deletion cost first.
	HasCosts bool
}

// FillOf returns how the Pods of a workload that is to have so many in all fill its subsets.
func FillOf(s *v1beta1.WorkloadSpread, total int32) (out Fill, err error) {
	if out.Limits, err = Limits(s, total); err != nil {
		return Fill{}, err
	}
	out.HasCosts = HasCosts(TargetOf(s).GroupKind)
	for i := range s.Spec.Subsets {
		of := &s.Spec.Subsets[i]
		if of.MinReplicas != nil {
			floor, err := bound(of.Name, "minReplicas", of.MinReplicas, total)
			if err != nil {
				return Fill{}, err
			}
			if out.Floors == nil {
				out.Floors = make([]int32, len(out.Limits))
			}
			if out.Floors[i] = floor; out.Limits[i] != Unlimited {
				out.Floors[i] = min(floor, out.Limits[i])
			}
		}
		if of.Weight != nil {
			if out.Weights == nil {
				out.Weights = slices.Repeat([]int32{1}, len(out.Limits)) // the schema wants all of them or none
			}
			out.Weights[i] = max(1, *of.Weight)
		}
	}
	return out, nil
}

func (f Fill) floor(subset int) int {
	if f.Floors == nil {
		return 0
	}
	return int(f.Floors[subset])
}

func (f Fill) hasRoom(subset, has int) bool {
	return f.Limits[subset] == Unlimited || has < int(f.Limits[subset])
}

// IsCounted reports whether a Pod that is given to a subset which has so many takes room there that has to be counted.
func (f Fill) IsCounted(subset, has int) bool {
	return f.Limits[subset] != Unlimited || f.Weights != nil || has < f.floor(subset)
}

// Next returns the subset of the next Pod, of subsets that have so many; -1 if none of those that take Pods has room.
func (f Fill) Next(has []int, open []bool) int {
	for i := range f.Floors {
		if open[i] && has[i] < f.floor(i) {
			return i
		}
	}
	best := -1
	for i := range f.Limits {
		if !open[i] || !f.hasRoom(i, has[i]) {
			continue
		}
		if f.Weights == nil {
			return i
		}
		if best < 0 || f.isLighter(i, has[i], best, has[best]) {
			best = i
		}
	}
	return best
}

// isLighter reports whether a subset that has so many Pods is to get the next one rather than another: (2a+1)/weight of a is the smaller
// one. So each subset has exactly its share whenever there are as many Pods as the weights in all, or a multiple of that.
func (f Fill) isLighter(a, hasA, b, hasB int) bool {
	return (2*int64(hasA)+1)*int64(f.Weights[b]) < (2*int64(hasB)+1)*int64(f.Weights[a])
}

// Earlier returns the subsets that would be given a Pod rather than the chosen one, -1 for none, if they had fewer Pods.
func (f Fill) Earlier(chosen int, has []int, open []bool) []int {
	var out []int
	byFloor := chosen >= 0 && has[chosen] < f.floor(chosen)
	for i := range f.Limits {
		if i == chosen || !open[i] || f.Limits[i] == 0 {
			continue
		}
		before := chosen < 0 || i < chosen
		if byFloor && before && f.floor(i) > 0 || !byFloor && (before || f.Weights != nil || f.floor(i) > 0) {
			out = append(out, i)
		}
	}
	return out
}

// RoomFor returns how many more Pods may be given at once from a subset on that has been chosen: with weights to all of those that take
// Pods, else to that one up to its floor or its limit.
func (f Fill) RoomFor(chosen int, has []int, open []bool) int32 {
	switch {
	case has[chosen] < f.floor(chosen):
		return int32(f.floor(chosen) - has[chosen])
	case !f.hasRoom(chosen, has[chosen]):
		return 0
	case f.Weights == nil:
		return roomIn(f.Limits[chosen], has[chosen])
	}
	room := 0
	for i := range f.Limits {
		if !open[i] {
			continue
		}
		if f.Limits[i] == Unlimited {
			return anyNumber
		}
		room += max(0, int(f.Limits[i])-has[i])
	}
	return int32(min(room, anyNumber))
}

const (
	// anyNumber is more Pods than are given at once.
	anyNumber = 1 << 20
	// lastOrdinal is the last one that is looked for one by one.
	lastOrdinal = 1 << 16
)

// OfOrdinal returns the subset of the Pod of a StatefulSet; -1 if none takes it. With limits of 5, 5 and none, ordinals 0 to 4 are in the
// first subset, 5 to 9 in the second, and all others in the third.
func (f Fill) OfOrdinal(ordinal int32, open []bool) int {
	if f.Weights != nil {
		return f.ofWeightedOrdinal(int(ordinal), open)
	}
	until := 0
	for i := range f.Floors {
		if open[i] {
			if until += f.floor(i); int(ordinal) < until {
				return i
			}
		}
	}
	for i := range f.Limits {
		if !open[i] {
			continue
		}
		if f.Limits[i] == Unlimited {
			return i
		}
		if until += int(f.Limits[i]) - f.floor(i); int(ordinal) < until {
			return i
		}
	}
	return -1
}

func (f Fill) ofWeightedOrdinal(ordinal int, open []bool) int {
	round, bounded := 0, f.Floors != nil
	for i := range f.Limits {
		if open[i] {
			round += int(f.Weights[i])
			bounded = bounded || f.Limits[i] != Unlimited
		}
	}
	if !bounded && round > 0 {
		ordinal %= round // each round is as the one before
	}
	if ordinal > lastOrdinal {
		return -1
	}
	has, at := make([]int, len(f.Limits)), -1
	for range ordinal + 1 {
		if at = f.Next(has, open); at < 0 {
			return -1
		}
		has[at]++
	}
	return at
}

// Open returns which subsets take Pods.
func Open(s *v1beta1.WorkloadSpread) []bool {
	out := make([]bool, len(s.Spec.Subsets))
	for i := range out {
		out[i] = IsSchedulable(s, s.Spec.Subsets[i].Name)
	}
	return out
}
