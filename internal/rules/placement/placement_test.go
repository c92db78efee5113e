package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/rules/placement"
)

// amount reads "" as nothing, "50%" and "3" as what they are.
func amount(text string) *intstr.IntOrString {
	if text == "" {
		return nil
	}
	value := intstr.Parse(text)
	return &value
}

func of(name, replicas string) placement.Subset {
	return placement.Subset{Name: name, Replicas: amount(replicas)}
}

func within(name, low, high string) placement.Subset {
	return placement.Subset{Name: name, Min: amount(low), Max: amount(high)}
}

type change func(*placement.Subset)

func (c change) on(s placement.Subset) placement.Subset {
	c(&s)
	return s
}

func has(current, ready int32) change {
	return func(s *placement.Subset) { s.Current, s.Ready = current, ready }
}

func stuck(current, ready int32) change {
	return func(s *placement.Subset) { s.Current, s.Ready, s.Unschedulable, s.Marked = current, ready, true, true }
}

func waits(current, reserved int32) change {
	return func(s *placement.Subset) {
		s.Current, s.Reserved, s.Unschedulable, s.Marked = current, reserved, true, true
	}
}

func marked(current, reserved int32) change {
	return func(s *placement.Subset) { s.Current, s.Reserved, s.Marked = current, reserved, true }
}

func pinned(current int32) change {
	return func(s *placement.Subset) { s.Current, s.Pinned = current, true }
}

func TestDivide(t *testing.T) {
	type subsets = []placement.Subset
	a, b, c := within("a", "", ""), within("b", "", ""), within("c", "", "")
	const more, fewer = "the subsets specify 8 Pods and 5 are to be divided: each gets its share of these",
		"the subsets specify 4 Pods and 5 are to be divided: each gets its share of these"
	for name, tc := range map[string]struct {
		demand   placement.Demand
		want     []int32
		adjusted string
		unplaced int32
	}{
		"no subset":                            {demand: placement.Demand{Total: 3}, want: []int32{}},
		"new subsets share, the last gets one": {demand: placement.Demand{Total: 10, Subsets: subsets{a, b, c}}, want: []int32{3, 3, 4}},
		"a number, a percentage, the rest":     {demand: placement.Demand{Total: 6, Subsets: subsets{of("a", "1"), of("b", "50%"), c}}, want: []int32{1, 3, 2}},
		"a remainder stays where it is":        {demand: placement.Demand{Total: 10, Subsets: subsets{has(4, 4).on(a), has(3, 3).on(b), has(3, 3).on(c)}}, want: []int32{4, 3, 3}},
		"one more":                             {demand: placement.Demand{Total: 11, Subsets: subsets{has(4, 4).on(a), has(3, 3).on(b), has(3, 3).on(c)}}, want: []int32{4, 3, 4}},
		"a subset is gone":                     {demand: placement.Demand{Total: 10, Subsets: subsets{has(3, 3).on(a), has(3, 3).on(b)}}, want: []int32{5, 5}},
		"percentages are rounded half up":      {demand: placement.Demand{Total: 3, Subsets: subsets{of("a", "50%"), b}}, want: []int32{2, 1}},
		"more is specified than there is":      {demand: placement.Demand{Total: 5, Subsets: subsets{of("a", "4"), of("b", "4"), c}}, want: []int32{3, 2, 0}, adjusted: more},
		"all is specified, and too little":     {demand: placement.Demand{Total: 5, Subsets: subsets{of("a", "1"), of("b", "3")}}, want: []int32{1, 4}, adjusted: fewer},
		"nothing is wanted anywhere":           {demand: placement.Demand{Total: 3, Subsets: subsets{of("a", "0"), of("b", "0")}}, want: []int32{2, 1}, adjusted: "the subsets specify 0 Pods and 3 are to be divided: each gets its share of these"},

		"limits":                        {demand: placement.Demand{Total: 5, Subsets: subsets{within("a", "2", "4"), within("b", "2", "")}}, want: []int32{3, 2}},
		"limits, more":                  {demand: placement.Demand{Total: 8, Subsets: subsets{within("a", "2", "4"), within("b", "2", "")}}, want: []int32{4, 4}},
		"fewer than the lower limits":   {demand: placement.Demand{Total: 3, Subsets: subsets{within("a", "2", ""), within("b", "2", "")}}, want: []int32{2, 1}},
		"limits are percentages of all": {demand: placement.Demand{Total: 10, Subsets: subsets{within("a", "", "30%"), b}}, want: []int32{3, 7}},
		"no subset may have the rest":   {demand: placement.Demand{Total: 5, Subsets: subsets{within("a", "", "2"), within("b", "", "2")}}, want: []int32{2, 2}, unplaced: 1},

		"adaptive, at first":               {demand: placement.Demand{Adaptive: true, Total: 3, Subsets: subsets{within("a", "", "2"), within("b", "", "2"), c}}, want: []int32{2, 1, 0}},
		"adaptive, b has no nodes":         {demand: placement.Demand{Adaptive: true, Total: 3, Subsets: subsets{has(2, 2).on(within("a", "", "2")), stuck(1, 0).on(within("b", "", "2")), c}}, want: []int32{2, 0, 1}},
		"adaptive, scaled out":             {demand: placement.Demand{Adaptive: true, Total: 5, Subsets: subsets{has(2, 2).on(within("a", "", "2")), stuck(0, 0).on(within("b", "", "2")), has(1, 1).on(c)}}, want: []int32{2, 0, 3}},
		"adaptive, b is tried again":       {demand: placement.Demand{Adaptive: true, Total: 5, Subsets: subsets{has(2, 2).on(within("a", "", "2")), has(0, 0).on(within("b", "", "2")), has(2, 2).on(c)}}, want: []int32{2, 1, 2}},
		"adaptive, a least number is kept": {demand: placement.Demand{Adaptive: true, Total: 3, Subsets: subsets{stuck(2, 0).on(within("a", "2", "2")), b}}, want: []int32{2, 1}},

		"reserved, at first":               {demand: placement.Demand{Reserve: true, Total: 2, Subsets: subsets{a, b, c}}, want: []int32{2, 0, 0}},
		"reserved, a waits":                {demand: placement.Demand{Reserve: true, Total: 2, Subsets: subsets{waits(2, 2).on(a), b, c}}, want: []int32{2, 2, 0}},
		"reserved, a and b wait":           {demand: placement.Demand{Reserve: true, Total: 2, Subsets: subsets{waits(2, 2).on(a), waits(2, 2).on(b), c}}, want: []int32{2, 2, 2}},
		"reserved, scaled out":             {demand: placement.Demand{Reserve: true, Total: 4, Subsets: subsets{waits(2, 2).on(a), waits(2, 2).on(b), has(2, 2).on(c)}}, want: []int32{2, 2, 4}},
		"reserved, a has recovered":        {demand: placement.Demand{Reserve: true, Total: 4, Subsets: subsets{marked(2, 0).on(a), waits(2, 2).on(b), has(4, 4).on(c)}}, want: []int32{4, 2, 2}},
		"reserved, the new Pods of a wait": {demand: placement.Demand{Reserve: true, Total: 4, Subsets: subsets{marked(4, 2).on(a), waits(2, 2).on(b), has(2, 2).on(c)}}, want: []int32{4, 2, 2}},
		"reserved, all of a runs":          {demand: placement.Demand{Reserve: true, Total: 4, Subsets: subsets{has(4, 4).on(a), waits(2, 2).on(b), has(2, 2).on(c)}}, want: []int32{4, 0, 0}},

		"a pinned subset keeps what it has": {demand: placement.Demand{Total: 12, Subsets: subsets{has(5, 5).on(a), pinned(5).on(b)}}, want: []int32{7, 5}},
		"and gets its share afterwards":     {demand: placement.Demand{Total: 12, Subsets: subsets{has(7, 7).on(a), has(5, 5).on(b)}}, want: []int32{6, 6}},
		"a pinned subset has too many":      {demand: placement.Demand{Total: 3, Subsets: subsets{has(5, 5).on(a), pinned(5).on(b)}}, want: []int32{0, 5}},
		"a pinned subset within limits":     {demand: placement.Demand{Total: 9, Subsets: subsets{within("a", "2", "4"), pinned(1).on(within("b", "3", "5")), c}}, want: []int32{4, 1, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := placement.Divide(tc.demand)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(placement.Division{Replicas: tc.want, Adjusted: tc.adjusted, Unplaced: tc.unplaced}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]int32{"0": 0, "7": 7, "50%": 3, "0%": 0, "100%": 5, "9%": 0, "10%": 1} {
		if got, err := placement.Number(intstr.Parse(text), 5); got != want || err != nil {
			t.Errorf("%s of 5 is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "101%", "-1%", "1.5%", "half", "%", ""} {
		if got, err := placement.Number(intstr.Parse(text), 5); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
	if _, err := placement.Divide(placement.Demand{Subsets: []placement.Subset{of("a", "many")}}); err == nil {
		t.Error("a number that can't be read is divided")
	}
}
