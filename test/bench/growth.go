package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// growth is what a run has measured along all dimensions. tools/plot draws it.
type growth struct {
	Processor  string `json:"processor"`
	Processors int    `json:"processors"`
	// Nodes are those of all dimensions but that of nodes.
	Nodes      int       `json:"nodes"`
	Dimensions []grownIn `json:"dimensions"`
}

// grownIn is one dimension: what was measured at each size, and the charts of it.
type grownIn struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	Axis   string  `json:"axis"`
	Charts []chart `json:"charts"`
	Points []sized `json:"points"`
}

// chart is one quantity over the size.
type chart struct {
	Title string `json:"title"`
	Unit  string `json:"unit"`
	// Linear says what linear growth looks like: constant, for what is counted for each Pod; proportional; or straight, for what is not
	// zero at size zero.
	Linear string `json:"linear"`
	Lines  []line `json:"lines"`
}

// line is one quantity of a chart, such as that of one phase.
type line struct {
	Name   string  `json:"name"`
	Points []point `json:"points"`
}

type point struct {
	Size  float64 `json:"size"`
	Value float64 `json:"value"`
}

const constant, proportional, straight = "constant", "proportional", "straight"

// chartOf says how a chart is made of what was measured.
type chartOf struct {
	title, unit, linear string
	lines               []lineOf
}

// lineOf says how a line is made of what was measured. The value is not a number at a size at which it was not measured.
type lineOf struct {
	name  string
	value func(sized) float64
}

// draw makes the charts. A quantity that is in proportion to the size says nothing about size zero, which is left out there.
func (g *grownIn) draw(charts []chartOf) {
	for _, of := range charts {
		c := chart{Title: of.title, Unit: of.unit, Linear: of.linear}
		for _, l := range of.lines {
			drawn := line{Name: l.name}
			for _, p := range g.Points {
				value := l.value(p)
				if (p.Size > 0 || of.linear == straight) && !math.IsNaN(value) {
					drawn.Points = append(drawn.Points, point{Size: float64(p.Size), Value: value})
				}
			}
			c.Lines = append(c.Lines, drawn)
		}
		g.Charts = append(g.Charts, c)
	}
}

// ofPhase returns a quantity of one phase.
func ofPhase(name string, value func(measurement) float64) lineOf {
	return lineOf{name, func(s sized) float64 {
		for _, m := range s.Phases {
			if m.Phase == name {
				return value(m)
			}
		}
		return math.NaN()
	}}
}

func ofPhases(value func(measurement) float64) []lineOf {
	return []lineOf{ofPhase(creating, value), ofPhase(updatingInPlace, value), ofPhase(recreating, value), ofPhase(scalingIn, value)}
}

// chartsOfPhases are those of workloads. The memory is the most until the end of all phases.
func chartsOfPhases() []chartOf {
	return []chartOf{
		{"CPU time of the manager", "ms for each Pod", constant, ofPhases(func(m measurement) float64 { return m.CPUPerPod })},
		{"Writes to Pods", "writes for each Pod", constant, ofPhases(func(m measurement) float64 { return m.WritesPerPod })},
		{"Time until all is done", "s", proportional, ofPhases(func(m measurement) float64 { return m.Seconds })},
		{"Most memory of the manager", "MiB", straight, []lineOf{{"all phases", func(s sized) float64 {
			most := 0.0
			for _, m := range s.Phases {
				most = max(most, m.PeakMiB)
			}
			return most
		}}}},
	}
}

// chartsOfWaits say how long others wait for the controller of a large workload.
func chartsOfWaits() []chartOf {
	return []chartOf{
		{"Answers to a small CloneSet beside, 99 of 100", "ms", constant, ofPhases(func(m measurement) float64 {
			if m.Answer == nil {
				return math.NaN()
			}
			return m.Answer.P99
		})},
		{"Passes, 99 of 100", "ms", constant, ofPhases(func(m measurement) float64 { return m.PassP99 })},
	}
}

func chartsOfStarts() []chartOf {
	return []chartOf{
		{"Memory of the manager", "MiB", straight, []lineOf{
			{"most", func(s sized) float64 { return s.Start.PeakMiB }},
			{"at rest", func(s sized) float64 { return s.Start.RestMiB }},
			{"heap after collection", func(s sized) float64 { return s.Start.LiveMiB }},
		}},
		{"Time from start until ready", "s", straight, []lineOf{
			{"by the clock", func(s sized) float64 { return s.Start.ReadySeconds }},
			{"CPU time", func(s sized) float64 { return s.Start.ReadyCPUSeconds }},
		}},
	}
}

func chartsOfLoads() []chartOf {
	return []chartOf{
		{"Added to the creation of a Pod", "ms", constant, []lineOf{
			{"median", func(s sized) float64 { return s.Load.With.P50 - s.Load.Without.P50 }},
			{"99 of 100", func(s sized) float64 { return s.Load.With.P99 - s.Load.Without.P99 }},
		}},
		{"Admission within the manager", "ms", constant, []lineOf{
			{"median", func(s sized) float64 { return s.Load.Handling.P50 }},
			{"99 of 100", func(s sized) float64 { return s.Load.Handling.P99 }},
		}},
		{"CPU time of the manager", "ms for each Pod", constant, []lineOf{
			{"admission and counts", func(s sized) float64 { return 1000 * s.Load.CPUSeconds / float64(s.Load.Pods) }},
		}},
		{"CPU time of the manager while SidecarSets are created", "s", proportional, []lineOf{
			{"all of them", func(s sized) float64 { return s.Load.SetsCPUSeconds }},
		}},
	}
}

// sizes are those at which anything of a chart was measured.
func (c chart) sizes() []float64 {
	var out []float64
	for _, l := range c.Lines {
		for _, p := range l.Points {
			out = append(out, p.Size)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// at returns the value at a size, as tables show it.
func (l line) at(size float64) string {
	for _, p := range l.Points {
		if p.Size == size {
			return fmt.Sprintf("%.2f", p.Value)
		}
	}
	return notMeasured
}

// print writes a table in Markdown for each chart.
func (g grownIn) print(to io.Writer) {
	fmt.Fprintf(to, "\n## %s\n", g.Title)
	for _, c := range g.Charts {
		if len(c.Lines) == 0 {
			continue
		}
		fmt.Fprintf(to, "\n%s, %s\n\n| %s |", c.Title, c.Unit, g.Axis)
		for _, l := range c.Lines {
			fmt.Fprintf(to, " %s |", l.Name)
		}
		fmt.Fprintf(to, "\n|%s\n", strings.Repeat(" ---: |", len(c.Lines)+1))
		for _, size := range c.sizes() {
			fmt.Fprintf(to, "| %.0f |", size)
			for _, l := range c.Lines {
				fmt.Fprintf(to, " %s |", l.at(size))
			}
			fmt.Fprintln(to)
		}
	}
}
