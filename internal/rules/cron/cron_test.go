package cron

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestSince(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule, zone, after, now string
		missed, next               string
		many                       bool
	}{
		"three slots missed":           {"*/10 * * * *", "UTC", "2026-01-01T10:00:00Z", "2026-01-01T10:37:00Z", "2026-01-01T10:30:00Z", "2026-01-01T10:40:00Z", false},
		"none missed":                  {"*/10 * * * *", "UTC", "2026-01-01T10:30:00Z", "2026-01-01T10:37:00Z", "", "2026-01-01T10:40:00Z", false},
		"right at a slot":              {"*/10 * * * *", "UTC", "2026-01-01T10:30:00Z", "2026-01-01T10:40:00Z", "2026-01-01T10:40:00Z", "2026-01-01T10:50:00Z", false},
		"a hundred missed":             {"* * * * *", "UTC", "2026-01-01T10:00:00Z", "2026-01-01T11:40:30Z", "2026-01-01T11:40:00Z", "2026-01-01T11:41:00Z", false},
		"one more than a hundred":      {"* * * * *", "UTC", "2026-01-01T10:00:00Z", "2026-01-01T11:41:00Z", "2026-01-01T11:41:00Z", "2026-01-01T11:42:00Z", true},
		"years of minutes":             {"* * * * *", "UTC", "2020-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", true},
		"once a year":                  {"@yearly", "UTC", "2025-06-01T00:00:00Z", "2026-06-01T00:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", false},
		"a day that never comes":       {"0 0 30 2 *", "UTC", "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "", "", false},
		"the clock was put back":       {"*/10 * * * *", "UTC", "2026-01-01T11:00:00Z", "2026-01-01T10:37:00Z", "", "2026-01-01T11:10:00Z", false},
		"another time zone":            {"0 10 * * *", "Asia/Shanghai", "2022-09-05T12:00:00Z", "2022-09-06T01:59:00Z", "", "2022-09-06T02:00:00Z", false},
		"a time zone of its own":       {"TZ=Asia/Shanghai 0 10 * * *", "", "2022-09-05T12:00:00Z", "2022-09-06T02:00:00Z", "2022-09-06T02:00:00Z", "2022-09-07T02:00:00Z", false},
		"every so often":               {"@every 90m", "UTC", "2026-01-01T10:00:30Z", "2026-01-01T13:10:00Z", "2026-01-01T13:00:30Z", "2026-01-01T14:30:30Z", false},
		"every so often, not yet":      {"@every 90m", "UTC", "2026-01-01T10:00:30Z", "2026-01-01T11:10:00Z", "", "2026-01-01T11:30:30Z", false},
		"every second is a floor":      {"@every 1s", "UTC", "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", true},
		"the hour that spring skips":   {"30 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z", "2026-03-29T12:00:00Z", "", "2026-03-30T00:30:00Z", false},
		"the hour that autumn repeats": {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T12:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", false},
		"all of the repeated hour":     {"*/20 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T01:20:00Z", "2026-10-25T01:40:00Z", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(tc.schedule, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			got := s.Since(at(t, tc.after), at(t, tc.now))
			want := Due{Missed: at(t, tc.missed), Next: at(t, tc.next), Many: tc.many}
			if diff := cmp.Diff(want, got, cmp.Comparer(time.Time.Equal)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for schedule, wrong := range map[string]bool{
		"@every 1s": true, "@every 4999ms": true, "@every 5s": false, "@every 90m": false, "* * * * *": false, "@often": true,
	} {
		if err := Check(schedule); (err != nil) != wrong {
			t.Errorf("Check(%q) = %v, want an error: %t", schedule, err, wrong)
		}
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule, zone string
		zoneIsWrong    bool
	}{
		"nothing":                      {schedule: ""},
		"four fields":                  {schedule: "* * * *"},
		"a minute too many":            {schedule: "60 * * * *"},
		"a zone and nothing else":      {schedule: "TZ=0"},
		"a cron zone and nothing else": {schedule: "CRON_TZ=UTC"},
		"an unknown word":              {schedule: "@often"},
		"no such zone":                 {schedule: "* * * * *", zone: "Mars/Base", zoneIsWrong: true},
		"the zone of the machine":      {schedule: "* * * * *", zone: "local", zoneIsWrong: true},
		"a path":                       {schedule: "* * * * *", zone: "../../etc/passwd", zoneIsWrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(tc.schedule, tc.zone); err == nil || errors.Is(err, ErrTimeZone) != tc.zoneIsWrong {
				t.Errorf("Parse() = %v, want an error, of the time zone: %v", err, tc.zoneIsWrong)
			}
		})
	}
}

// TestSinceWalks compares with what a walk over all slots finds.
func TestSinceWalks(t *testing.T) {
	schedules := []string{"* * * * *", "*/7 * * * *", "13 */3 * * *", "0 9 * * 1-5", "30 2 * * *", "0 0 1,15 * *", "@hourly", "*/20 2 * * 0"}
	zones := []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"}
	rapid.Check(t, func(r *rapid.T) {
		s, err := Parse(rapid.SampledFrom(schedules).Draw(r, "schedule"), rapid.SampledFrom(zones).Draw(r, "zone"))
		if err != nil {
			r.Fatal(err)
		}
		after := time.Unix(rapid.Int64Range(1_700_000_000, 1_800_000_000).Draw(r, "after"), 0)
		now := after.Add(time.Duration(rapid.Int64Range(0, 10*24*3600).Draw(r, "seconds")) * time.Second)
		want, passed := Due{}, 0
		slot := s.next(after)
		for ; !slot.After(now); slot = s.next(slot) {
			want.Missed = slot
			passed++
		}
		want.Next, want.Many = slot, passed > Many
		if diff := cmp.Diff(want, s.Since(after, now), cmp.Comparer(time.Time.Equal)); diff != "" {
			r.Errorf("(-walk +got):\n%s", diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, schedule := range []string{"* * * * *", "TZ=0", "CRON_TZ=UTC @daily", "@every 1h"} {
		f.Add(schedule, "")
	}
	f.Fuzz(func(t *testing.T, schedule, zone string) {
		s, err := Parse(schedule, zone)
		if err != nil {
			return
		}
		now := time.Unix(1_800_000_000, 0)
		if due := s.Since(now.Add(-time.Hour), now); due.Missed.After(now) || !due.Next.IsZero() && !due.Next.After(now) {
			t.Errorf("%q: %+v", schedule, due)
		}
	})
}
