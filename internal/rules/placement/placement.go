// Package placement divides a number of Pods among the subsets of a UnitedDeployment.
//
// Subsets either specify their share (R14: a number, a percentage, or an equal part of what is left), or have limits and are filled in the
// order of their list. Limits can follow the health of the subsets, and Pods that wait for a node can be stood in for.
package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Subset is one domain, as the user wants it and as it was last seen.
type Subset struct {
	Name string
	// Replicas, Min and Max are what the user gives, numbers or percentages of all Pods; nil where nothing is given.
	Replicas, Min, Max *intstr.IntOrString
	// Current is the number of Pods that the subset was last given, and Ready how many of its Pods are.
	Current, Ready int32
	// Pinned subsets keep the number that they have, whatever the user wants: nothing can be changed there now.
	Pinned bool
	// Unschedulable subsets have Pods that no node takes.
	Unschedulable bool
	// Marked subsets were unschedulable until lately, or are new: with Reserve their Pods count only once they are not reserved.
	Marked bool
	// Reserved is the number of Pods that wait for a node while others stand in for them.
	Reserved int32
}

// Demand is what is to be divided.
type Demand struct {
	// Total is the number of Pods wanted in all subsets together.
	Total   int32
	Subsets []Subset
	// Adaptive lets limits follow the health of the subsets: ready Pods stay where they are, and an unschedulable subset gets no more.
	Adaptive bool
	// Reserve leaves Pods that wait for a node where they are, and has later subsets run substitutes; it takes the place of Adaptive.
	Reserve bool
}

// Division is the number of Pods of each subset, in their order.
type Division struct {
	Replicas []int32
	// Adjusted says why subsets do not get what they specify, in words; empty where they do.
	Adjusted string
	// Unplaced is the number of Pods that no subset may have.
	Unplaced int32
}

// Number returns a number of Pods, or a percentage of total rounded to the nearest number, half up: "50%" of 5 is 3.
func Number(value intstr.IntOrString, total int32) (int32, error) {
	if value.Type == intstr.Int {
		if value.IntVal < 0 {
			return 0, fmt.Errorf("%d is negative", value.IntVal)
		}
		return value.IntVal, nil
	}
	digits, isPercent := strings.CutSuffix(value.StrVal, "%")
	percent, err := strconv.ParseUint(digits, 10, 8)
	if err != nil || !isPercent || percent > 100 {
		return 0, fmt.Errorf("%q is neither a number nor a percentage from 0%% to 100%%", value.StrVal)
	}
	return int32((int64(total)*int64(percent) + 50) / 100), nil
}

// HasLimits reports whether the subsets are filled in order, within limits, rather than by what they specify.
func HasLimits(subsets []Subset) bool {
	return !slices.ContainsFunc(subsets, func(s Subset) bool { return s.Replicas != nil }) &&
		slices.ContainsFunc(subsets, func(s Subset) bool { return s.Min != nil || s.Max != nil })
}

// Divide divides the Pods. Its sum is the total, unless limits or pinned subsets leave no room, or reserved Pods have substitutes.
func Divide(d Demand) (Division, error) {
	total := int64(d.Total)
	var open []*share
	out := Division{Replicas: make([]int32, len(d.Subsets))}
	for i := range d.Subsets {
		s := share{Subset: &d.Subsets[i], at: i, upper: math.MaxInt32}
		if s.Pinned {
			out.Replicas[i] = s.Current
			total -= int64(s.Current)
			continue
		}
		if err := s.resolve(d.Total); err != nil {
			return Division{}, fmt.Errorf("subset %s: %w", s.Name, err)
		}
		open = append(open, &s)
	}
	left := int32(max(total, 0))
	switch {
	case d.Reserve:
		out.Unplaced = reserve(open, left)
	case d.Adaptive || HasLimits(d.Subsets):
		if d.Adaptive {
			for _, s := range open {
				s.heedHealth()
			}
		}
		out.Unplaced = fill(open, left)
	default:
		out.Adjusted = specified(open, left)
	}
	for _, s := range open {
		out.Replicas[s.at] = s.given
	}
	return out, nil
}

// share is what one subset gets.
type share struct {
	*Subset
	// at is its place in the list.
	at int
	// wanted is what it specifies, if it does; lower and upper are its limits.
	wanted       int32
	isSpecified  bool
	lower, upper int32
	given        int32
}

func (s *share) resolve(total int32) (err error) {
	read := func(value *intstr.IntOrString, into *int32) {
		if value != nil && err == nil {
			*into, err = Number(*value, total)
		}
	}
	s.isSpecified = s.Replicas != nil
	read(s.Replicas, &s.wanted)
	read(s.Min, &s.lower)
	read(s.Max, &s.upper)
	return err
}

// heedHealth corrects limits by the health of the subset. One that is unschedulable keeps its ready Pods and gets no more, but for a least
// number that the user gives; Pods that are ready elsewhere stay where they are.
func (s *share) heedHealth() {
	switch {
	case s.Unschedulable:
		s.lower, s.upper = min(max(s.Ready, s.lower), s.upper), min(s.Ready, s.upper)
	case s.Ready > s.lower:
		s.lower = min(s.Ready, s.upper)
	}
}

// fill gives each subset its lower limit in order, then each up to its upper limit in order, and returns what is left over. A total of 5
// for a{2,4} and b{2,no limit} gives 3 and 2.
func fill(open []*share, left int32) int32 {
	for _, s := range open {
		s.given = min(s.lower, left)
		left -= s.given
	}
	for _, s := range open {
		more := min(max(s.upper-s.given, 0), left)
		s.given += more
		left -= more
	}
	return left
}

// reserve is fill where Pods that wait for a node do not count: what a subset gets beyond its capacity is given again to later ones. A
// total of 2 gives 2, 2 and 2 if the Pods of the first two subsets wait for nodes.
func reserve(open []*share, left int32) int32 {
	for _, s := range open {
		s.grant(min(s.lower, left), &left)
	}
	for _, s := range open {
		upper := s.upper
		if s.Unschedulable {
			upper = min(upper, s.Current)
		}
		s.grant(min(max(upper-s.given, 0), left), &left)
	}
	return left
}

// grant gives a subset more Pods, of which only those within its capacity count. A grant that counts for nothing is made once for what is
// still wanted.
func (s *share) grant(more int32, left *int32) {
	counts := more
	if s.Unschedulable || s.Marked {
		counts = min(more, max(s.Current-s.Reserved-s.given, 0))
	}
	s.given += more
	*left -= counts
}

// specified gives subsets what they specify, and divides the rest equally among the others; what remains goes to those that have the most
// now, then to the last by name, so that a change of the total moves the fewest Pods. It returns why it could not do so.
func specified(open []*share, left int32) (adjusted string) {
	var fixed, others []*share
	sum := int64(0)
	for _, s := range open {
		if s.isSpecified {
			fixed = append(fixed, s)
			sum += int64(s.wanted)
		} else {
			others = append(others, s)
		}
	}
	if len(fixed) > 0 && (sum > int64(left) || len(others) == 0 && sum < int64(left)) {
		proportional(fixed, left, sum)
		return fmt.Sprintf("the subsets specify %d Pods and %d are to be divided: each gets its share of these", sum, left)
	}
	for _, s := range fixed {
		s.given = s.wanted
	}
	if len(others) == 0 {
		return ""
	}
	left -= int32(sum)
	n := int32(len(others))
	slices.SortFunc(others, func(a, b *share) int {
		return cmp.Or(cmp.Compare(b.Current, a.Current), strings.Compare(b.Name, a.Name))
	})
	for i, s := range others {
		s.given = left / n
		if int32(i) < left%n {
			s.given++
		}
	}
	return ""
}

// proportional divides the total as the wanted numbers stand to each other: rounded down, and what remains to those with the largest
// remainder, the earlier one if they are equal. 5 for subsets that want 4 and 4 gives 3 and 2. Where all want none, they are equal.
func proportional(fixed []*share, total int32, sum int64) {
	type rest struct {
		*share
		remainder int64
	}
	var rests []rest
	left := total
	for _, s := range fixed {
		weight, of := int64(s.wanted), sum
		if sum == 0 {
			weight, of = 1, int64(len(fixed))
		}
		s.given = int32(int64(total) * weight / of)
		left -= s.given
		rests = append(rests, rest{s, int64(total) * weight % of})
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return cmp.Compare(b.remainder, a.remainder) })
	for _, r := range rests[:left] {
		r.given++
	}
}
