package screen

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// unbroken is a width that no text reaches.
const unbroken = 1 << 12

// Frame shows what is drawn in place of the frame before, on a live screen; elsewhere those lines of it that the frame before did not have.
// A frame that is higher than the terminal is cut.
func (s *Screen) Frame(draw func(*Screen)) {
	var out bytes.Buffer
	in := &Screen{Writer: &out, Width: s.Width, Live: s.Live}
	if !s.Live {
		in.Width = unbroken // a line that has changed is written whole
	}
	draw(in)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	before := s.frame
	s.frame = lines
	if !s.Live {
		for _, line := range lines {
			if !slices.Contains(before, line) {
				s.Linef("%s", line)
			}
		}
		return
	}
	if most := s.Height - 1; s.Height > 2 && len(lines) > most {
		lines = append(slices.Clone(lines[:most-1]), fmt.Sprintf("... %d more lines", len(lines)-most+1))
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn) // up to where the frame before began
	}
	for _, line := range lines {
		b.WriteString("\r\x1b[K" + cut(line, s.Width) + "\n")
	}
	b.WriteString("\x1b[J") // what the frame before had below
	fmt.Fprint(s, b.String())
	s.drawn = len(lines)
}

// cut returns as much of a line as fits: one that the terminal breaks counts as two.
func cut(line string, width int) string {
	if columns(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

// Lines returns a table as lines, the heading first, such that they fit behind a lead. A row is one line: its last cell is cut.
func (s *Screen) Lines(headings []string, rows [][]string, lead string) []string {
	var out bytes.Buffer
	(&Screen{Writer: &out, Width: unbroken}).Table(headings, rows)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = cut(lines[i], s.Width-columns(lead))
	}
	return lines
}
