package refusal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

func newCounter(t *testing.T, registry *prometheus.Registry, now func() time.Time) *Counter {
	t.Helper()
	c, err := NewCounter(registry, CounterOptions{Name: "refusals", What: "name", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTheMetricStaysSmall, whatever users are told of, and forgets those of whom nothing was heard for a day.
func TestTheMetricStaysSmall(t *testing.T) {
	now, registry := time.Unix(1_800_000_000, 0), prometheus.NewRegistry()
	c := newCounter(t, registry, func() time.Time { return now })
	refuse := func(user string) (series int, sum float64) {
		c.Add("web", user)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range families[0].Metric {
			sum += m.Counter.GetValue()
		}
		return len(families[0].Metric), sum
	}
	for i := range 1500 {
		if series, sum := refuse(fmt.Sprintf("user-%d", i)); series > maxSeries+1 || sum != float64(i+1) {
			t.Fatalf("after %d users there are %d series with %v refusals", i+1, series, sum)
		}
	}
	now = now.Add(seriesTTL)
	if series, _ := refuse("me"); series != 1 {
		t.Errorf("a day later there are %d series", series)
	}
}

// TestTheMetricDoesNotGrowWithUsers: reviews may be made up, with a new user in each.
func TestTheMetricDoesNotGrowWithUsers(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := newCounter(t, registry, time.Now)
	for i := range 3 * maxSeries {
		c.Add("web", strconv.Itoa(i%(2*maxSeries)))
	}
	families, err := registry.Gather()
	if err != nil || len(families[0].Metric) != maxSeries+1 {
		t.Errorf("%d series, want %d (%v)", len(families[0].Metric), maxSeries+1, err)
	}
}

// TestTheLogBeginsAnew when it is long, and keeps the one before.
func TestTheLogBeginsAnew(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenLog(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	l.Write(Line{Name: "first"})
	l.size = maxBytes
	l.Write(Line{Name: "second"})
	for file, want := range map[string]string{logName: "second", rotatedName: "first"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	for _, dir := range []string{"", filepath.Join(dir, "missing")} {
		l, err := OpenLog(dir, logr.Discard())
		if l != nil || err != nil {
			t.Errorf("a log in %q: %v, %v", dir, l, err)
		}
		l.Write(Line{})
	}
}

// TestTheLogRecoversFromAFailedRotation: nothing is lost meanwhile, and the next rotation that can be made is.
func TestTheLogRecoversFromAFailedRotation(t *testing.T) {
	for name, tc := range map[string]struct {
		fail, mend func(dir string) error
	}{
		"it can't be renamed": {
			fail: func(dir string) error { return os.MkdirAll(filepath.Join(dir, rotatedName, "full"), 0o750) },
			mend: func(dir string) error { return os.RemoveAll(filepath.Join(dir, rotatedName)) },
		},
		"it was renamed, and no new one could be opened": {
			fail: func(dir string) error {
				return errors.Join(os.Rename(filepath.Join(dir, logName), filepath.Join(dir, rotatedName)), os.Mkdir(filepath.Join(dir, logName), 0o750))
			},
			mend: func(dir string) error {
				err := os.Remove(filepath.Join(dir, logName))
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := OpenLog(dir, logr.Discard())
			if err != nil {
				t.Fatal(err)
			}
			l.Write(Line{Name: "first"})
			l.size = maxBytes
			if err := tc.fail(dir); err != nil {
				t.Fatal(err)
			}
			l.Write(Line{Name: "second"})
			if err := tc.mend(dir); err != nil {
				t.Fatal(err)
			}
			l.Write(Line{Name: "third"})
			l.Write(Line{Name: "fourth"})
			for file, want := range map[string][]string{rotatedName: {"first", "second"}, logName: {"third", "fourth"}} {
				text, err := os.ReadFile(filepath.Join(dir, file))
				for _, line := range want {
					if err != nil || !strings.Contains(string(text), line) {
						t.Errorf("%s does not hold %q: %q, %v", file, line, text, err)
					}
				}
			}
		})
	}
}
