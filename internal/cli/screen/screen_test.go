package screen

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{Writer: &out, Width: 44}
	s.Table([]string{"POD", "NODE", "ZONE", "BECAUSE"}, [][]string{
		{"web-9k2", "n3", "", "not ready, goes first of all that there are"}, {"web-4xq", "n1", "", "é"},
	})
	want := `POD      NODE  BECAUSE
web-9k2  n3    not ready, goes first of all
               that there are
web-4xq  n1    é
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestChange(t *testing.T) {
	for name, tc := range map[string]struct {
		live bool
		want string
	}{
		"without a terminal each line stays": {false, "one\na line that is too long for the screen\n"},
		"on a terminal it changes in place":  {true, "\r\x1b[Kone\r\x1b[Ka line that is too…\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := &Screen{Writer: &out, Width: 20, Live: tc.live}
			s.Change("one")
			s.Change("a line that is too long for the screen")
			s.End()
			if d := cmp.Diff(tc.want, out.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	for format, want := range map[string]string{JSON: "{\n  \"a\": 1\n}\n", YAML: "a: 1\n"} {
		var out bytes.Buffer
		if err := Encode(&out, format, map[string]int{"a": 1}); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", format, out.String(), err)
		}
	}
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if got := Age(now.Add(-90*time.Minute), now); got != "90m" {
		t.Errorf("an hour and a half is %s", got)
	}
	if got := Age(time.Time{}, now); got != "<unknown>" {
		t.Errorf("no time is %s", got)
	}
}

// TestFrame checks that a frame takes the place of the one before on a terminal, and that elsewhere only its new lines are written.
func TestFrame(t *testing.T) {
	frames := [][]string{{"a 1", "b 1", "c 1"}, {"a 1", "b 2"}}
	show := func(s *Screen) {
		for _, lines := range frames {
			s.Frame(func(s *Screen) {
				for _, line := range lines {
					s.Linef("%s", line)
				}
			})
		}
	}
	var plain, live bytes.Buffer
	show(&Screen{Writer: &plain, Width: DefaultWidth})
	if got, want := plain.String(), "a 1\nb 1\nc 1\nb 2\n"; got != want {
		t.Errorf("elsewhere it is %q, want %q", got, want)
	}
	show(&Screen{Writer: &live, Width: DefaultWidth, Height: 3, Live: true})
	want := "\r\x1b[Ka 1\n\r\x1b[K... 2 more lines\n\x1b[J\x1b[2A\r\x1b[Ka 1\n\r\x1b[Kb 2\n\x1b[J"
	if got := live.String(); got != want {
		t.Errorf("on a terminal it is %q, want %q", got, want)
	}
}
