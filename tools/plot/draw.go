package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	// columns is how many panels are side by side; each is so wide and high, in points.
	columns     = 2
	panelWidth  = 340
	panelHeight = 230
	// referenceName stands in the legend for all lines that show linear growth.
	referenceName = "linear"
)

// colors are those of the lines of a chart, which people with any color vision tell apart.
func colors() []color.Color {
	return []color.Color{
		color.RGBA{R: 0, G: 114, B: 178, A: 255}, color.RGBA{R: 213, G: 94, B: 0, A: 255}, color.RGBA{R: 0, G: 158, B: 115, A: 255},
	}
}

// draw returns the panels of a dimension as one picture.
func (d dimension) draw() ([]byte, error) {
	canvas := vgsvg.New(d.size())
	if err := d.drawOn(draw.New(canvas)); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	// Machines without this font have another one without serifs.
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

func (d dimension) rows() int { return (len(d.Charts) + columns - 1) / columns }

func (d dimension) size() (width, height vg.Length) {
	return columns * panelWidth, vg.Length(d.rows()) * panelHeight
}

// drawOn draws the panels, row by row.
func (d dimension) drawOn(canvas draw.Canvas) error {
	panels := make([][]*plot.Plot, d.rows())
	for i := range d.rows() * columns {
		var panel *plot.Plot
		if i < len(d.Charts) {
			var err error
			if panel, err = d.Charts[i].panel(d.Axis); err != nil {
				return err
			}
		}
		panels[i/columns] = append(panels[i/columns], panel)
	}
	canvas.SetColor(color.White) // pages may be dark
	canvas.Fill(canvas.Rectangle.Path())
	tiles := draw.Tiles{Rows: d.rows(), Cols: columns, PadX: 16, PadY: 14, PadTop: 8, PadBottom: 8, PadLeft: 8, PadRight: 16}
	for i, row := range plot.Align(panels, tiles, canvas) {
		for j, place := range row {
			if panels[i][j] != nil {
				panels[i][j].Draw(place)
			}
		}
	}
	return nil
}

// panel draws one chart.
func (c chart) panel(axis string) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, axis, c.Unit
	setFonts(p)
	p.Legend.Top, p.Legend.Left = true, c.Linear != constant
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 225}, color.Gray{Y: 225}
	p.Add(grid)
	if c.Linear != straight {
		p.X.Scale = plot.LogScale{}
	}
	if c.Linear == proportional {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	}
	for i, l := range c.Lines {
		if err := c.add(p, l, colors()[i%len(colors())]); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	p.Legend.Add(referenceName, &plotter.Line{LineStyle: dashes(color.Gray{Y: 110})})
	c.setRanges(p)
	return p, nil
}

// add draws one line, its points and what it is compared with.
func (c chart) add(p *plot.Plot, l line, of color.Color) error {
	points := c.drawn(l)
	if len(points) == 0 {
		return nil
	}
	measured, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	measured.Width, measured.Color = vg.Points(1.4), of
	marks, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	marks.Shape, marks.Radius, marks.Color = draw.CircleGlyph{}, vg.Points(2.6), of
	if reference := c.reference(points); reference != nil {
		dashed, err := plotter.NewLine(reference)
		if err != nil {
			return err
		}
		dashed.LineStyle = dashes(of)
		p.Add(dashed)
	}
	p.Add(measured, marks)
	p.Legend.Add(l.Name, measured)
	return nil
}

// dashes is the style of lines that show linear growth.
func dashes(of color.Color) draw.LineStyle {
	return draw.LineStyle{Color: of, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}
}

// setRanges has the axes begin and end a little beside the points, and marks the sizes that were measured.
func (c chart) setRanges(p *plot.Plot) {
	var sizes []float64
	for _, l := range c.Lines {
		for _, one := range l.Points {
			sizes = append(sizes, one.Size)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	var ticks plot.ConstantTicks
	for i, size := range sizes {
		tick := plot.Tick{Value: size, Label: strconv.FormatFloat(size, 'f', -1, 64)}
		// Sizes that are close together on a linear axis would be written over each other.
		if c.Linear == straight && i > 0 && size-sizes[i-1] < sizes[len(sizes)-1]/8 {
			tick.Label = ""
		}
		ticks = append(ticks, tick)
	}
	p.X.Tick.Marker = ticks
	if len(sizes) == 1 { // an axis of one value has no length
		p.X.Min, p.X.Max = sizes[0]/2, sizes[0]*2
	}
	if c.Linear == proportional {
		if p.Y.Min <= 0 || math.IsInf(p.Y.Min, 0) { // nothing of it can be drawn
			p.Y.Min, p.Y.Max = 0.1, 1
		}
		p.Y.Min, p.Y.Max = p.Y.Min/1.3, p.Y.Max*2.5 // the legend is above the lines
		return
	}
	p.Y.Min, p.Y.Max = min(p.Y.Min, 0), max(p.Y.Max*1.4, 1e-3)
}

// logTicks returns marks at 1, 2 and 5 of each power of ten.
func logTicks(least, most float64) []plot.Tick {
	var out []plot.Tick
	for power := math.Floor(math.Log10(least)); power <= math.Ceil(math.Log10(most)); power++ {
		for _, digit := range []float64{1, 2, 5} {
			if at := digit * math.Pow(10, power); at >= least && at <= most {
				out = append(out, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'g', 3, 64)})
			}
		}
	}
	return out
}

// setFonts gives all texts a font without serifs.
func setFonts(p *plot.Plot) {
	for style, size := range map[*text.Style]font.Length{
		&p.Title.TextStyle: 11, &p.X.Label.TextStyle: 9, &p.Y.Label.TextStyle: 9, &p.X.Tick.Label: 8, &p.Y.Tick.Label: 8,
		&p.Legend.TextStyle: 8,
	} {
		style.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	}
	p.Title.Padding, p.Legend.Padding = vg.Points(4), vg.Points(1)
}
