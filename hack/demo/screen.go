package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// screen shows a rollout: on a terminal as a table that changes, elsewhere as lines when something changes and the table at the end.
type screen struct {
	out      *os.File
	terminal bool
	began    time.Time
	// lines is the height of the table on the terminal, to be drawn over.
	lines int
	// story lists what happened, the latest last; now is what was shown last.
	story []string
	now   picture
}

// picture is what there is at a moment.
type picture struct {
	// counts are the numbers on one line, table lists what there is.
	counts, table string
	// news are what happened since the picture before.
	news []string
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	return &screen{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"}
}

func (s *screen) begin(title string) {
	fmt.Fprintf(s.out, "\n%s\n\n", title)
	s.began, s.lines, s.story, s.now = time.Now(), 0, nil, picture{}
}

func (s *screen) show(p picture) {
	s.story = append(s.story, p.news...)
	if s.terminal {
		if p.counts != s.now.counts || len(p.news) > 0 || p.table != s.now.table {
			s.draw(p)
		}
	} else {
		for _, line := range p.news {
			fmt.Fprintf(s.out, "         %s\n", line)
		}
		if p.counts != s.now.counts {
			fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.began).Seconds(), p.counts)
		}
	}
	s.now = p
}

func (s *screen) end() {
	if !s.terminal {
		fmt.Fprintf(s.out, "\n%s", s.now.table)
	}
}

// draw draws over what was drawn before.
func (s *screen) draw(p picture) {
	var out strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\x1b[J", s.lines)
	}
	fmt.Fprintf(&out, "  %s   %.1fs\n\n%s\n", p.counts, time.Since(s.began).Seconds(), p.table)
	const latest = 5
	for _, line := range s.story[max(0, len(s.story)-latest):] {
		fmt.Fprintf(&out, "  %s\n", line)
	}
	text := out.String()
	s.lines = strings.Count(text, "\n")
	fmt.Fprint(s.out, text)
}
