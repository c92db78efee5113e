// Package screen writes what the commands show: tables that fit a terminal, one line that changes in place, JSON and YAML.
package screen

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"
)

// DefaultWidth is the number of columns of what is no terminal.
const DefaultWidth = 80

// minWidth is the least number of columns that texts are wrapped to.
const minWidth = 40

// Formats of output besides text.
const (
	Text = ""
	JSON = "json"
	YAML = "yaml"
)

// Screen is where a command writes to.
type Screen struct {
	io.Writer
	// Width is the number of columns, Height that of the lines of a terminal; zero where it has no end.
	Width, Height int
	// Live means that lines can be changed in place.
	Live bool
	// drawn is how many lines of the last frame are on a live screen.
	drawn int
	// frame are the lines of the last frame.
	frame []string
}

// Of returns the screen of a writer: that of a terminal, unless the environment says that nobody watches it (CI, TERM=dumb).
func Of(w io.Writer, getenv func(string) string) *Screen {
	s := &Screen{Writer: w, Width: DefaultWidth}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		s.Width, s.Height = max(width, minWidth), height
	}
	s.Live = getenv("TERM") != "dumb" && getenv("CI") == ""
	return s
}

// Linef writes a line.
func (s *Screen) Linef(format string, args ...any) {
	fmt.Fprintln(s, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// Wrapf writes a text behind a lead, in several lines where it is too long. The lines after the first begin where the text does, but where
// there is no lead, two columns later.
func (s *Screen) Wrapf(lead, format string, args ...any) {
	indent := columns(lead)
	if indent == 0 {
		indent = gap
	}
	for i, line := range Wrap(fmt.Sprintf(format, args...), s.Width-indent, s.Width-columns(lead)) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		s.Linef("%s%s", lead, line)
	}
}

// Wrap breaks a text between words into lines of so many columns, the first of which may have another width. A word that is longer than a
// line stays whole: it may be a name to copy.
func Wrap(text string, width, first int) []string {
	var lines []string
	line, limit := "", first
	for _, word := range strings.Fields(text) {
		if line != "" && columns(line)+1+columns(word) > limit {
			lines, line, limit = append(lines, line), word, width
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func columns(text string) int { return utf8.RuneCountInString(text) }

// Table writes rows in columns, of which the last one takes what is left of the width and is wrapped. Columns that are empty in all rows
// are left out, with their headings.
func (s *Screen) Table(headings []string, rows [][]string) {
	headings, rows = dropEmpty(headings, rows)
	all := rows
	if headings != nil {
		all = append([][]string{headings}, rows...)
	}
	var widths []int
	for _, row := range all {
		for i, cell := range row {
			if i >= len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	for _, row := range all {
		s.row(row, widths)
	}
}

// gap is between two columns.
const gap = 2

func (s *Screen) row(row []string, widths []int) {
	var line strings.Builder
	used := 0
	for i, cell := range row[:len(row)-1] {
		line.WriteString(cell + strings.Repeat(" ", widths[i]-columns(cell)+gap))
		used += widths[i] + gap
	}
	left := max(s.Width-used, minWidth/2)
	for i, part := range Wrap(row[len(row)-1], left, left) {
		if i > 0 {
			line.WriteString("\n" + strings.Repeat(" ", used))
		}
		line.WriteString(part)
	}
	s.trimmed(line.String())
}

// trimmed writes lines without blanks at their ends.
func (s *Screen) trimmed(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		s.Linef("%s", line)
	}
}

func dropEmpty(headings []string, rows [][]string) ([]string, [][]string) {
	if len(rows) == 0 {
		return headings, rows
	}
	filled := map[int]bool{} // of all rows once: there may be a row for each of thousands of Pods
	for _, row := range rows {
		for i, cell := range row {
			filled[i] = filled[i] || cell != ""
		}
	}
	keep := func(row []string) []string {
		var out []string
		for i, cell := range row {
			if filled[i] {
				out = append(out, cell)
			}
		}
		return out
	}
	kept := make([][]string, 0, len(rows))
	for _, row := range rows {
		kept = append(kept, keep(row))
	}
	if headings == nil {
		return nil, kept
	}
	return keep(headings), kept
}

// Change shows a line in place of the one that was shown last, on a live screen; elsewhere it is written below.
func (s *Screen) Change(line string) {
	if !s.Live {
		s.Linef("%s", line)
		return
	}
	if columns(line) > s.Width-1 {
		line = string([]rune(line)[:s.Width-2]) + "…"
	}
	fmt.Fprint(s, "\r\x1b[K"+line)
	s.drawn = 1
}

// End leaves the line that was changed in place.
func (s *Screen) End() {
	if s.Live && s.drawn > 0 {
		fmt.Fprintln(s)
	}
	s.drawn = 0
}

// Encode writes a value as JSON or YAML.
func Encode(w io.Writer, format string, value any) error {
	encoded, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	encoded = append(encoded, '\n')
	if format == YAML {
		if encoded, err = yaml.JSONToYAML(encoded); err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
	}
	_, err = w.Write(encoded)
	return err
}

// Age says how long ago something was, as kubectl does.
func Age(at, now time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(at))
}
