package placement_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/internal/rules/placement"
)

func drawAmount(t *rapid.T, label string) *intstr.IntOrString {
	if rapid.Bool().Draw(t, label+" given") {
		return nil
	}
	value := intstr.FromInt32(rapid.Int32Range(0, 9).Draw(t, label))
	if rapid.Bool().Draw(t, label+" is a percentage") {
		value = intstr.FromString(fmt.Sprintf("%d%%", rapid.IntRange(0, 100).Draw(t, label+" percent")))
	}
	return &value
}

// drawLimits returns subsets with limits, of which the last has no upper one.
func drawLimits(t *rapid.T) []placement.Subset {
	subsets := make([]placement.Subset, rapid.IntRange(1, 5).Draw(t, "subsets"))
	for i := range subsets {
		s := placement.Subset{Name: string(rune('a' + i)), Min: drawAmount(t, "min"), Max: drawAmount(t, "max")}
		s.Current = rapid.Int32Range(0, 9).Draw(t, "current")
		s.Ready = rapid.Int32Range(0, s.Current).Draw(t, "ready")
		s.Unschedulable = rapid.Bool().Draw(t, "unschedulable")
		s.Marked = s.Unschedulable || rapid.Bool().Draw(t, "marked")
		s.Reserved = rapid.Int32Range(0, s.Current-s.Ready).Draw(t, "reserved")
		subsets[i] = s
	}
	subsets[len(subsets)-1].Max = nil
	return subsets
}

func divide(t *rapid.T, d placement.Demand) placement.Division {
	out, err := placement.Divide(d)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range out.Replicas {
		if n < 0 {
			t.Fatalf("subset %d gets %d", i, n)
		}
	}
	return out
}

func sum(numbers []int32) (out int32) {
	for _, n := range numbers {
		out += n
	}
	return out
}

// moved is the number of Pods that are created and deleted between two divisions.
func moved(a, b []int32) (out int32) {
	for i := range a {
		out += max(a[i]-b[i], b[i]-a[i])
	}
	return out
}

func limit(value *intstr.IntOrString, total, otherwise int32) int32 {
	if value == nil {
		return otherwise
	}
	n, err := placement.Number(*value, total)
	if err != nil {
		panic(err)
	}
	return n
}

// TestTheSumIsTheTotal in every mode but Reserve, if one subset that works may have any number; with Reserve, what counts is.
func TestTheSumIsTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := placement.Demand{Total: rapid.Int32Range(0, 30).Draw(t, "total"), Subsets: drawLimits(t)}
		d.Subsets[len(d.Subsets)-1].Unschedulable = false
		switch rapid.IntRange(0, 3).Draw(t, "mode") {
		case 0:
			d.Adaptive = true
		case 1: // by what they specify
			for i := range d.Subsets {
				d.Subsets[i].Replicas = drawAmount(t, "replicas")
			}
		case 2:
			d.Reserve, d.Subsets[len(d.Subsets)-1].Marked = true, false
		}
		got := divide(t, d)
		if n := sum(got.Replicas); n != d.Total && !d.Reserve {
			t.Fatalf("%d are divided into %v", d.Total, got.Replicas)
		}
		counted := int32(0)
		for i, s := range d.Subsets {
			if s.Unschedulable || s.Marked {
				counted += min(got.Replicas[i], s.Current-s.Reserved)
			} else {
				counted += got.Replicas[i]
			}
		}
		if d.Reserve && counted != d.Total {
			t.Fatalf("%d of %v count, want %d", counted, got.Replicas, d.Total)
		}
	})
}

// TestLimitsHold: no subset gets more than its upper limit, and none gets anything beyond its lower one while another lacks its own.
func TestLimitsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := placement.Demand{Total: rapid.Int32Range(0, 30).Draw(t, "total"), Subsets: drawLimits(t)}
		for i := range d.Subsets { // as admission has it
			if s := &d.Subsets[i]; limit(s.Min, d.Total, 0) > limit(s.Max, d.Total, 1000) {
				s.Min = nil
			}
		}
		d.Subsets[0].Min = amount("0")
		d.Adaptive = rapid.Bool().Draw(t, "adaptive")
		d.Reserve = !d.Adaptive && rapid.Bool().Draw(t, "reserve")
		got := divide(t, d)
		lacks, beyond := false, false
		for i, s := range d.Subsets {
			if high := limit(s.Max, d.Total, 1000); got.Replicas[i] > high {
				t.Fatalf("subset %d gets %d of %v, no more than %d", i, got.Replicas[i], got.Replicas, high)
			}
			low := limit(s.Min, d.Total, 0)
			lacks = lacks || got.Replicas[i] < low
			beyond = beyond || got.Replicas[i] > low
			if grows := got.Replicas[i] > max(s.Current, low); d.Reserve && s.Unschedulable && grows {
				t.Fatalf("the unschedulable subset %d grows to %d", i, got.Replicas[i])
			}
			if d.Adaptive && s.Unschedulable && got.Replicas[i] > max(s.Ready, low) {
				t.Fatalf("the unschedulable subset %d gets %d, and has %d ready", i, got.Replicas[i], s.Ready)
			}
		}
		if lacks && beyond && !d.Adaptive && !d.Reserve {
			t.Fatalf("%v: one subset lacks what it should have at least, and another has more", got.Replicas)
		}
	})
}

// TestTheSmallestChangeMovesTheFewestPods: another total creates or deletes as many Pods as it differs by, and the same total none.
func TestTheSmallestChangeMovesTheFewestPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := placement.Demand{Total: rapid.Int32Range(0, 40).Draw(t, "total"), Subsets: drawLimits(t)}
		numbersOnly := func(value *intstr.IntOrString) *intstr.IntOrString {
			if value != nil && value.Type == intstr.String {
				return nil
			}
			return value
		}
		equal := rapid.Bool().Draw(t, "equal shares")
		for i := range d.Subsets {
			s := &d.Subsets[i]
			s.Min, s.Max = numbersOnly(s.Min), numbersOnly(s.Max)
			if equal {
				s.Min, s.Max = nil, nil
			}
		}
		before := divide(t, d)
		total := d.Total
		for i := range d.Subsets {
			d.Subsets[i].Current = before.Replicas[i]
		}
		if again := divide(t, d); moved(before.Replicas, again.Replicas) != 0 {
			t.Fatalf("the same total again: %v, then %v", before.Replicas, again.Replicas)
		}
		d.Total = rapid.Int32Range(0, 40).Draw(t, "another total")
		after := divide(t, d)
		if n := moved(before.Replicas, after.Replicas); n != max(d.Total-total, total-d.Total) {
			t.Fatalf("from %d to %d: %d Pods are moved, from %v to %v", total, d.Total, n, before.Replicas, after.Replicas)
		}
	})
}

// TestReadyPodsAreNotMoved by an adaptive division of the same total or more, unless a lower limit elsewhere asks for them.
func TestReadyPodsAreNotMoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := placement.Demand{Adaptive: true, Subsets: drawLimits(t)}
		for i := range d.Subsets {
			s := &d.Subsets[i]
			s.Min = nil
			if s.Max != nil && s.Max.Type == intstr.String {
				s.Max = nil
			}
			s.Ready = min(s.Ready, limit(s.Max, 0, 1000))
			d.Total += s.Ready
		}
		d.Total += rapid.Int32Range(0, 9).Draw(t, "more")
		got := divide(t, d)
		for i, s := range d.Subsets {
			if got.Replicas[i] < s.Ready {
				t.Fatalf("subset %d gets %d of %v, and has %d ready", i, got.Replicas[i], got.Replicas, s.Ready)
			}
		}
	})
}

// TestPinnedSubsetsStay, and the others take the difference.
func TestPinnedSubsetsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := placement.Demand{Total: rapid.Int32Range(0, 30).Draw(t, "total"), Subsets: drawLimits(t)}
		kept := int32(0)
		for i := range d.Subsets[:len(d.Subsets)-1] {
			if s := &d.Subsets[i]; rapid.Bool().Draw(t, "pinned") {
				s.Pinned = true
				kept += s.Current
			}
		}
		got := divide(t, d)
		for i, s := range d.Subsets {
			if s.Pinned && got.Replicas[i] != s.Current {
				t.Fatalf("the pinned subset %d gets %d, and has %d", i, got.Replicas[i], s.Current)
			}
		}
		if n := sum(got.Replicas); n != max(d.Total, kept) {
			t.Fatalf("%d are divided into %v, of which %d are pinned", d.Total, got.Replicas, kept)
		}
	})
}
