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
			{Size: 10, Start: &footprint{PeakMiB: 60}, Load: &load{Pods: 10}, Phases: []measurement{{Phase: creating, PeakMiB: 50}}},
		}}
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
