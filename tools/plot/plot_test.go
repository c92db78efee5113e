package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
)

// measured is what a run may have measured: with zero, where a logarithmic axis has no place.
const measured = `{"dimensions": [{"name": "pods", "axis": "Pods of the CloneSet", "charts": [
  {"title": "CPU time", "unit": "ms for each Pod", "linear": "constant", "lines": [
    {"name": "create", "points": [{"size": 10, "value": 3}, {"size": 100, "value": 2}, {"size": 1000, "value": 2.5}]},
    {"name": "scale in", "points": [{"size": 10, "value": 0}, {"size": 100, "value": 1}, {"size": 1000, "value": 1}]}]},
  {"title": "Time", "unit": "s", "linear": "proportional", "lines": [
    {"name": "create", "points": [{"size": 10, "value": 0}, {"size": 100, "value": 2}, {"size": 1000, "value": 30}]}]},
  {"title": "Most memory", "unit": "MiB", "linear": "straight", "lines": [
    {"name": "all phases", "points": [{"size": 0, "value": 50}, {"size": 100, "value": 52}, {"size": 1000, "value": 71}]}]}
]}]}`

// picture is what a test reads of a picture: its texts, and how many filled circles are in it.
type picture struct {
	texts   []string
	circles int
}

// look reads a picture as XML: it is well-formed.
func look(t *testing.T, text []byte) picture {
	t.Helper()
	var p picture
	d := xml.NewDecoder(bytes.NewReader(text))
	inText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		} else if err != nil {
			t.Fatalf("the picture is not well-formed: %v\n%s", err, text)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
			for _, a := range token.Attr {
				if token.Name.Local == "path" && a.Name.Local == "d" && strings.Contains(a.Value, "A") {
					p.circles++
				}
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				p.texts = append(p.texts, string(token))
			}
		}
	}
}

// TestPlot: a file of figures becomes a picture with the titles, the axes and their units, the names of the lines, the sizes, and a mark for
// each measurement that its axes have a place for.
func TestPlot(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "scale.json"), filepath.Join(dir, "plots")
	if err := os.WriteFile(file, []byte(measured), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{file, folder}); err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile(filepath.Join(folder, "pods.svg"))
	if err != nil {
		t.Fatal(err)
	}
	got := look(t, drawn)
	for _, want := range []string{
		"CPU time", "Time", "Most memory", "Pods of the CloneSet", "ms for each Pod", "s", "MiB", "create", "scale in", "all phases", referenceName,
		"10", "100", "1000",
	} {
		if !slices.Contains(got.texts, want) {
			t.Errorf("no text is %q, but %q", want, got.texts)
		}
	}
	if got.circles != 11 {
		t.Errorf("%d circles, want 11: one for each measurement but that of 0 s", got.circles)
	}
}

// TestAlike: the same figures make the same picture, so that a repository shows no change where there is none.
func TestAlike(t *testing.T) {
	f, err := read([]byte(measured))
	if err != nil {
		t.Fatal(err)
	}
	first, err := f.Dimensions[0].draw()
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.Dimensions[0].draw()
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two pictures of the same figures differ, %v", err)
	}
}

func TestReference(t *testing.T) {
	points := plotter.XYs{{X: 10, Y: 3}, {X: 100, Y: 2}, {X: 1000, Y: 250}}
	for name, tc := range map[string]struct {
		linear growth
		points plotter.XYs
		want   plotter.XYs
	}{
		"for each Pod it is the least": {constant, points, plotter.XYs{{X: 10, Y: 2}, {X: 1000, Y: 2}}},
		"in proportion it leads through the point with the least for one": {
			proportional, points, plotter.XYs{{X: 10, Y: 0.2}, {X: 1000, Y: 20}},
		},
		"over a base it leads from the first to the last": {straight, points, plotter.XYs{{X: 10, Y: 3}, {X: 1000, Y: 250}}},
		"one point has none":                              {straight, points[:1], nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := chart{Linear: tc.linear}.reference(tc.points)
			near := func(a, b plotter.XY) bool { return math.Abs(a.X-b.X) < 1e-9 && math.Abs(a.Y-b.Y) < 1e-9 }
			if !slices.EqualFunc(got, tc.want, near) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestFiguresThatCannotBeDrawn(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":              {`{`, "unexpected end"},
		"another kind":         {`{"pods": 1000}`, "no dimensions"},
		"a name with a path":   {`{"dimensions": [{"name": "../x"}]}`, "no name of a file"},
		"nothing in it":        {`{"dimensions": [{"name": "x"}]}`, "no charts"},
		"growth of no kind":    {`{"dimensions": [{"name": "x", "charts": [{"linear": "log"}]}]}`, "want constant"},
		"size 0 of log. axes":  {strings.Replace(measured, `"size": 10,`, `"size": 0,`, 1), "no place for"},
		"a point of no number": {strings.Replace(measured, `"size": 10,`, `"size": "10",`, 1), "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want one with %q", err, tc.want)
			}
		})
	}
}
