package spread_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// filled returns how many of so many Pods each subset gets, one after the other; those that get none are not counted.
func filled(f spread.Fill, pods int) []int {
	has, open := make([]int, len(f.Limits)), slices.Repeat([]bool{true}, len(f.Limits))
	for range pods {
		if i := f.Next(has, open); i >= 0 {
			has[i]++
		}
	}
	return has
}

func TestFill(t *testing.T) {
	for name, tc := range map[string]struct {
		fill spread.Fill
		pods int
		want []int
	}{
		"in order":                           {spread.Fill{Limits: []int32{3, -1}}, 5, []int{3, 2}},
		"none has room":                      {spread.Fill{Limits: []int32{3, 1}}, 5, []int{3, 1}},
		"floors come first":                  {spread.Fill{Limits: []int32{4, -1}, Floors: []int32{1, 2}}, 5, []int{3, 2}},
		"floors in their order":              {spread.Fill{Limits: []int32{4, 4, 4}, Floors: []int32{2, 2, 2}}, 3, []int{2, 1, 0}},
		"a floor after an unlimited subset":  {spread.Fill{Limits: []int32{-1, -1}, Floors: []int32{0, 2}}, 5, []int{3, 2}},
		"equal weights":                      {spread.Fill{Limits: []int32{-1, -1, -1}, Weights: []int32{1, 1, 1}}, 10, []int{4, 3, 3}},
		"weights of 5, 3 and 2":              {spread.Fill{Limits: []int32{-1, -1, -1}, Weights: []int32{5, 3, 2}}, 20, []int{10, 6, 4}},
		"weights up to a limit":              {spread.Fill{Limits: []int32{2, -1}, Weights: []int32{1, 1}}, 7, []int{2, 5}},
		"weights that are full":              {spread.Fill{Limits: []int32{2, 1}, Weights: []int32{1, 1}}, 7, []int{2, 1}},
		"floors before weights":              {spread.Fill{Limits: []int32{-1, -1}, Floors: []int32{0, 3}, Weights: []int32{3, 1}}, 4, []int{1, 3}},
		"an uneven weight from the first on": {spread.Fill{Limits: []int32{-1, -1}, Weights: []int32{1, 2}}, 1, []int{0, 1}},
	} {
		if diff := cmp.Diff(tc.want, filled(tc.fill, tc.pods)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFillOf(t *testing.T) {
	s := deployment("50%", "2", "")
	s.Spec.Subsets[0].MinReplicas, s.Spec.Subsets[1].MinReplicas = new(intstr.FromString("25%")), new(intstr.FromInt32(3))
	want := spread.Fill{Limits: []int32{5, 2, -1}, Floors: []int32{3, 2, 0}, HasCosts: true}
	if diff := cmp.Diff(want, fillOf(t, s, 10)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !spread.NeedsTotal(s) {
		t.Error("a percentage needs no total")
	}
	s.Spec.Subsets[2].Weight = new(int32(4))
	if diff := cmp.Diff([]int32{1, 1, 4}, fillOf(t, s, 10).Weights); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if job := fillOf(t, newSpread("batch/v1", "Job", "1"), 10); job.CostIn(0, 0) != 0 {
		t.Errorf("a Pod of a Job costs %d", job.CostIn(0, 0))
	}
	s.Spec.Subsets[1].MinReplicas = new(intstr.FromString("many"))
	if _, err := spread.FillOf(s, 10); err == nil || err.Error() != "minReplicas many of subset b is neither a number nor a percentage" {
		t.Errorf("the error is %v", err)
	}
}

// TestEarlier: only who is passed over has to be counted anew.
func TestEarlier(t *testing.T) {
	ordered := spread.Fill{Limits: []int32{2, 0, 2, -1}}
	floors := spread.Fill{Limits: []int32{-1, -1, -1}, Floors: []int32{0, 1, 1}}
	weighted := spread.Fill{Limits: []int32{-1, 0, -1}, Weights: []int32{1, 1, 1}}
	for name, tc := range map[string]struct {
		fill   spread.Fill
		chosen int
		has    []int
		want   []int
	}{
		"the first one":                       {ordered, 0, []int{0, 0, 0, 0}, nil},
		"one after it":                        {ordered, 2, []int{2, 0, 0, 0}, []int{0}},
		"none":                                {ordered, -1, []int{2, 0, 2, 0}, []int{0, 2, 3}},
		"one up to its floor":                 {floors, 2, []int{0, 1, 0}, []int{1}},
		"one beyond all floors":               {floors, 0, []int{5, 1, 1}, []int{1, 2}},
		"any of those with weights":           {weighted, 0, []int{1, 0, 1}, []int{2}},
		"the last one of those with weights ": {weighted, 2, []int{1, 0, 0}, []int{0}},
	} {
		if diff := cmp.Diff(tc.want, tc.fill.Earlier(tc.chosen, tc.has, slices.Repeat([]bool{true}, len(tc.has)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func drawFill(t *rapid.T) spread.Fill {
	n := rapid.IntRange(1, 5).Draw(t, "subsets")
	f := spread.Fill{HasCosts: true}
	for range n {
		f.Limits = append(f.Limits, rapid.SampledFrom([]int32{-1, 0, 1, 3, 7}).Draw(t, "limit"))
	}
	if rapid.Bool().Draw(t, "floors") {
		for _, limit := range f.Limits {
			floor := rapid.Int32Range(0, 4).Draw(t, "floor")
			if limit >= 0 {
				floor = min(floor, limit)
			}
			f.Floors = append(f.Floors, floor)
		}
	}
	if rapid.Bool().Draw(t, "weights") {
		for range n {
			f.Weights = append(f.Weights, rapid.Int32Range(1, 9).Draw(t, "weight"))
		}
	}
	return f
}

// TestFillKeepsItsBounds: no subset gets more than its limit, none gets more than its floor before all have theirs, and no Pod is left over while there is room.
func TestFillKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, pods := drawFill(t), rapid.IntRange(0, 40).Draw(t, "Pods")
		has, all, short, beyond, room := filled(f, pods), 0, false, false, false
		for i := range has {
			all += has[i]
			floor := 0
			if f.Floors != nil {
				floor = int(f.Floors[i])
			}
			short, beyond, room = short || has[i] < floor, beyond || has[i] > floor, room || f.Limits[i] < 0 || has[i] < int(f.Limits[i])
			if f.Limits[i] >= 0 && has[i] > int(f.Limits[i]) {
				t.Fatalf("subset %d has %d Pods, want %d at most", i, has[i], f.Limits[i])
			}
		}
		if short && beyond {
			t.Fatalf("a subset has less than its floor, and another one more: %v", has)
		}
		if all < pods && room {
			t.Fatalf("%d of %d Pods are in a subset while there is room", all, pods)
		}
	})
}

// TestWeightsAreExact: with as many Pods as the weights in all, or a multiple of that, each subset has exactly its share.
func TestWeightsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int32Range(1, 9), 1, 6).Draw(t, "weights")
		sum := 0
		for _, w := range weights {
			sum += int(w)
		}
		rounds := rapid.IntRange(0, 4).Draw(t, "rounds")
		has := filled(spread.Fill{Limits: slices.Repeat([]int32{-1}, len(weights)), Weights: weights}, rounds*sum)
		for i, w := range weights {
			if has[i] != rounds*int(w) {
				t.Fatalf("the subsets have %v, want %d of each weight", has, rounds)
			}
		}
	})
}

// TestOrdinalsFillAsPodsDo: the Pods of a StatefulSet are where they would be if they came one after the other.
func TestOrdinalsFillAsPodsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFill(t)
		open := rapid.SliceOfN(rapid.Bool(), len(f.Limits), len(f.Limits)).Draw(t, "open")
		has := make([]int, len(f.Limits))
		for ordinal := range int32(50) {
			want := f.Next(has, open)
			if got := f.OfOrdinal(ordinal, open); got != want {
				t.Fatalf("ordinal %d is in subset %d, want %d", ordinal, got, want)
			}
			if want >= 0 {
				has[want]++
			}
		}
	})
	if got := (spread.Fill{Limits: []int32{-1, -1}, Weights: []int32{1, 1}}).OfOrdinal(1<<30+1, []bool{true, true}); got != 1 {
		t.Errorf("an ordinal that nobody has is in subset %d", got)
	}
}

// TestCostsUndoFilling: who scales in by costs has the Pods that fewer would have had, and the costs that they were created with stay as they are.
func TestCostsUndoFilling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFill(t)
		s := deployment(slices.Repeat([]string{""}, len(f.Limits))...)
		has, open := make([]int, len(f.Limits)), slices.Repeat([]bool{true}, len(f.Limits))
		var pods []*corev1.Pod
		for n := range 30 {
			i := f.Next(has, open)
			if i < 0 {
				break
			}
			p := podIn(fmt.Sprint(n), "v1", s.Spec.Subsets[i].Name, "")
			p.Annotations[corev1.PodDeletionCost] = fmt.Sprint(f.CostIn(i, has[i]))
			pods = append(pods, p)
			has[i]++
		}
		for p, cost := range spread.Costs(s, f, pods, "v1") {
			if was, _ := spread.CostOf(p); was != cost || cost <= 0 {
				t.Fatalf("Pod %s was created with %d and is to have %d", p.Name, was, cost)
			}
		}
		for len(pods) > 0 {
			slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { // among equals the last subset is the first to go
				x, _ := spread.CostOf(a)
				y, _ := spread.CostOf(b)
				return int(y) - int(x)
			})
			least := len(pods) - 1
			for i := range pods {
				x, _ := spread.CostOf(pods[i])
				y, _ := spread.CostOf(pods[least])
				m, _ := spread.MatchedOf(pods[i])
				l, _ := spread.MatchedOf(pods[least])
				if x == y && m.Subset > l.Subset {
					least = i
				}
			}
			gone, _ := spread.MatchedOf(pods[least])
			has[spread.IndexOf(s, gone.Subset)]--
			pods = slices.Delete(pods, least, least+1)
			if diff := cmp.Diff(filled(f, len(pods)), has); diff != "" {
				t.Fatalf("with %d Pods left (-want +got):\n%s", len(pods), diff)
			}
		}
	})
}

// TestOneWriteRepairsCosts: where a Pod goes out of turn and another one comes, one cost changes.
func TestOneWriteRepairsCosts(t *testing.T) {
	f := spread.Fill{Limits: []int32{-1, -1}, Weights: []int32{1, 1}, HasCosts: true}
	s := deployment("", "")
	var pods []*corev1.Pod
	for i := range 4 {
		p := podIn(fmt.Sprint(i), "v1", "a", "")
		p.Annotations[corev1.PodDeletionCost] = fmt.Sprint(f.CostIn(0, i))
		pods = append(pods, p)
	}
	pods[0].Annotations[corev1.PodDeletionCost] = fmt.Sprint(f.CostIn(0, 3)) // the first one was deleted, and this one came last
	changed := 0
	for p, cost := range spread.Costs(s, f, pods, "v1") {
		if was, _ := spread.CostOf(p); was != cost {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d costs change, want 1", changed)
	}
}
