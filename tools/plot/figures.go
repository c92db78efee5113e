package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"

	"gonum.org/v1/plot/plotter"
)

// figures are what test/bench writes, as far as it is drawn.
type figures struct {
	Dimensions []dimension `json:"dimensions"`
}

// dimension is one way in which a cluster grows.
type dimension struct {
	Name   string  `json:"name"`
	Axis   string  `json:"axis"`
	Charts []chart `json:"charts"`
}

// chart is one quantity over the size.
type chart struct {
	Title  string `json:"title"`
	Unit   string `json:"unit"`
	Linear growth `json:"linear"`
	Lines  []line `json:"lines"`
}

type line struct {
	Name   string  `json:"name"`
	Points []point `json:"points"`
}

type point struct {
	Size  float64 `json:"size"`
	Value float64 `json:"value"`
}

// growth is what linear growth looks like in a chart.
type growth string

const (
	// constant is for what is counted for each Pod: the size has a logarithmic axis, the quantity one from zero.
	constant growth = "constant"
	// proportional is for what doubles with the size: both axes are logarithmic.
	proportional growth = "proportional"
	// straight is for what is there at size zero already: both axes are linear.
	straight growth = "straight"
)

// read reads figures, and refuses those that can't be drawn.
func read(text []byte) (figures, error) {
	var f figures
	if err := json.Unmarshal(text, &f); err != nil {
		return f, err
	}
	if len(f.Dimensions) == 0 {
		return f, errors.New("there are no dimensions")
	}
	isName := regexp.MustCompile(`^[a-z0-9-]+$`)
	for _, d := range f.Dimensions {
		if !isName.MatchString(d.Name) {
			return f, fmt.Errorf("a dimension is called %q, which is no name of a file", d.Name)
		}
		if len(d.Charts) == 0 {
			return f, fmt.Errorf("%s has no charts", d.Name)
		}
		for _, c := range d.Charts {
			if err := c.check(); err != nil {
				return f, fmt.Errorf("%s, %s: %w", d.Name, c.Title, err)
			}
		}
	}
	return f, nil
}

func (c chart) check() error {
	switch c.Linear {
	case constant, proportional, straight:
	default:
		return fmt.Errorf("linear growth is %q, want %s, %s or %s", c.Linear, constant, proportional, straight)
	}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			if p.Size <= 0 && c.Linear != straight {
				return fmt.Errorf("%s has a point at size %v, which a logarithmic axis has no place for", l.Name, p.Size)
			}
		}
	}
	return nil
}

// drawn returns the points of a line that its chart has a place for: a quantity of zero has none on a logarithmic axis.
func (c chart) drawn(l line) plotter.XYs {
	var out plotter.XYs
	for _, p := range l.Points {
		if c.Linear != proportional || p.Value > 0 {
			out = append(out, plotter.XY{X: p.Size, Y: p.Value})
		}
	}
	return out
}

// reference returns what a line would be if its quantity grew linearly with the size. In proportion or for each Pod it is taken from the
// point at which the quantity is least, so that all others lie above it: those at small sizes by fixed costs, those at large ones by
// growth that is more than linear. For example, 3 ms for each of 10 Pods, 2 of 100 and 2.5 of 1000 are compared with 2. A straight
// reference leads from the first point to the last.
func (c chart) reference(points plotter.XYs) plotter.XYs {
	if len(points) < 2 {
		return nil
	}
	first, last := points[0], points[len(points)-1]
	if c.Linear == straight {
		return plotter.XYs{first, last}
	}
	unit := func(p plotter.XY) float64 {
		if c.Linear == proportional {
			return p.Y / p.X
		}
		return p.Y
	}
	least := math.Inf(1)
	for _, p := range points {
		least = min(least, unit(p))
	}
	if c.Linear == proportional {
		return plotter.XYs{{X: first.X, Y: least * first.X}, {X: last.X, Y: least * last.X}}
	}
	return plotter.XYs{{X: first.X, Y: least}, {X: last.X, Y: least}}
}
