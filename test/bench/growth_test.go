package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChartsOfEveryDimension(t *testing.T) {
	var names []string
	for _, d := range dimensions() {
		names = append(names, d.name)
		g := grownIn{Name: d.name, Title: d.title, Axis: d.axis, Points: []sized{
			{Size: 0, Start: &footprint{}, Load: &load{Pods: 10}},
			{Size: 10, Start: &footprint{PeakMiB: 60}, Load: &load{Pods: 10}},
		}}
		for _, phase := range []string{creating, updatingInPlace, recreating, scalingIn} {
			one := measurement{Phase: phase, PeakMiB: 50, Answer: &quantiles{P50: 20, P99: 30}}
			g.Points[1].Phases = append(g.Points[1].Phases, one)
		}
		g.draw(d.charts)
		for _, c := range g.Charts {
			want := 1 // a quantity in proportion says nothing at size zero
			if c.Linear == straight {
				want = 2
			}
			for _, l := range c.Lines {
				if len(l.Points) != want {
					t.Errorf("%s, %s, %s: %d points, want %d", d.name, c.Title, l.Name, len(l.Points), want)
				}
			}
			if c.Title == "" || c.Unit == "" || len(c.Lines) == 0 {
				t.Errorf("%s: %+v says too little", d.name, c)
			}
		}
		if !slices.IsSorted(d.sizes) {
			t.Errorf("%s: sizes %v: a cluster only grows", d.name, d.sizes)
		}
		var printed bytes.Buffer
		g.print(&printed)
		if !strings.Contains(printed.String(), "| "+d.axis+" |") || !strings.Contains(printed.String(), "\n| 10 |") {
			t.Errorf("%s: no table of what was measured:\n%s", d.name, printed.String())
		}
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(dimensions()) {
		t.Errorf("two of %v have one name", names)
	}
}

// TestNotMeasured checks that what was not measured at a size is neither drawn nor printed as zero.
func TestNotMeasured(t *testing.T) {
	all := []measurement{{Phase: creating, Answer: &quantiles{P99: 30}}, {Phase: scalingIn}}
	g := grownIn{Axis: "Pods", Points: []sized{{Size: 10, Phases: all[1:]}, {Size: 100, Phases: all}}}
	g.draw(chartsOfWaits()[:1])
	want := map[string][]point{creating: {{Size: 100, Value: 30}}, updatingInPlace: nil, recreating: nil, scalingIn: nil}
	for _, l := range g.Charts[0].Lines {
		if diff := cmp.Diff(want[l.Name], l.Points); diff != "" {
			t.Errorf("%s (-want +got):\n%s", l.Name, diff)
		}
	}
	var printed bytes.Buffer
	g.print(&printed)
	if row := "\n| 100 | 30.00 | - | - | - |\n"; !strings.Contains(printed.String(), row) {
		t.Errorf("no row %q:\n%s", row, printed.String())
	}
}

func TestPoints(t *testing.T) {
	var s settings
	if err := s.setPoints("300,100"); err != nil || !cmp.Equal(s.points, []int{100, 300}) {
		t.Errorf("%v, %v", s.points, err)
	}
	for _, wrong := range []string{"", "0", "-3", "1e3", "1,,2"} {
		if err := new(settings).setPoints(wrong); err == nil {
			t.Errorf("%q is taken for sizes", wrong)
		}
	}
}
