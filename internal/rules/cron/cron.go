// Package cron says at which times a schedule makes something due: the last time that was missed, and the next one.
//
// Slots follow the wall clock of the schedule's time zone: one in the hour that is skipped in spring is left out, one in the hour that is
// repeated in autumn comes once, unless it comes in every hour anyway.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// ErrTimeZone is the error of a schedule whose time zone is not known here.
var ErrTimeZone = errors.New("unknown time zone")

// Many is the number of missed slots beyond which somebody should be told: something was wrong for long.
const Many = 100

// MinEvery is the least distance of slots. The five fields of cron know none below a minute; @every does, and something due every second
// is work without end for everybody.
const MinEvery = 5 * time.Second

// Schedule is when something is due.
type Schedule struct {
	slots cron.Schedule
	zone  *time.Location
	// hourly slots come in every hour, repeated ones included.
	hourly bool
	// every is the distance of slots that are counted from the last one rather than read off the clock; 0 for others.
	every time.Duration
}

// Parse reads the five fields of cron, @daily and its like, or @every and a duration, with a time zone in front of them (TZ= or CRON_TZ=)
// or beside them; an empty zone is that of the process. Whatever it is given, it does not panic. The error is ErrTimeZone when it is only
// about the zone. Slots nearer to each other than MinEvery, which Check refuses and older versions did not, come every MinEvery.
func Parse(schedule, zone string) (s Schedule, err error) {
	defer func() {
		if cause := recover(); cause != nil { // the parser does with input such as "TZ=0"
			s, err = Schedule{}, fmt.Errorf("reading schedule %q: %v", schedule, cause)
		}
	}()
	if zone != "" && !NamesZone(schedule) {
		if err := CheckZone(zone); err != nil {
			return Schedule{}, err
		}
		schedule = "TZ=" + zone + " " + schedule
	}
	slots, err := cron.ParseStandard(schedule)
	if err != nil {
		return Schedule{}, fmt.Errorf("reading schedule %q: %w", schedule, err)
	}
	s = Schedule{slots: slots, zone: time.UTC}
	switch slots := slots.(type) {
	case cron.ConstantDelaySchedule:
		s.every = max(slots.Delay, MinEvery)
	case *cron.SpecSchedule:
		const star = 1 << 63 // how the library marks a field that is *
		s.zone, s.hourly = slots.Location, slots.Hour&star != 0
	}
	return s, nil
}

// Check reports what is wrong with a schedule: that it can't be read, or that its slots are nearer to each other than MinEvery.
func Check(schedule string) error {
	s, err := Parse(schedule, "")
	if err != nil {
		return err
	}
	if slots, ok := s.slots.(cron.ConstantDelaySchedule); ok && slots.Delay < MinEvery {
		return fmt.Errorf("is due every %s: use %s or more", slots.Delay, MinEvery)
	}
	return nil
}

// NamesZone reports whether a schedule has a time zone of its own.
func NamesZone(schedule string) bool { return strings.Contains(schedule, "TZ") }

// CheckZone reports what is wrong with the name of a time zone; the error is ErrTimeZone.
func CheckZone(zone string) error {
	switch {
	case zone == "":
		return fmt.Errorf("%w: the name is empty", ErrTimeZone)
	case strings.EqualFold(zone, "Local"):
		return fmt.Errorf("%w: %q depends on where the manager runs; name the zone itself, such as Asia/Tokyo", ErrTimeZone, zone)
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return fmt.Errorf("%w: %w", ErrTimeZone, err)
	}
	return nil
}

// Due is what a schedule says at a moment.
type Due struct {
	// Missed is the last slot that has passed; zero when none has.
	Missed time.Time
	// Many means that more than Many slots have passed.
	Many bool
	// Next is the first slot to come; zero when there is none.
	Next time.Time
}

// Since says which slots have passed after a moment and until now. Of */10 * * * *, from 10:00 at 10:37, the missed one is 10:30 and the
// next one 10:40. However many have passed, it takes few steps.
func (s Schedule) Since(after, now time.Time) Due {
	if after.After(now) { // the clock was put back
		return Due{Next: s.next(after)}
	}
	if s.every > 0 {
		after = after.Truncate(time.Second)
		passed := now.Sub(after) / s.every
		due := Due{Many: passed > Many, Next: after.Add((passed + 1) * s.every)}
		if passed > 0 {
			due.Missed = after.Add(passed * s.every)
		}
		return due
	}
	due := Due{Next: s.next(now)}
	passes := func(t time.Time) bool { // whether a slot lies between t and now
		slot := s.next(t)
		return !slot.IsZero() && !slot.After(now)
	}
	if !passes(after) {
		return due
	}
	// The last second that a slot comes after is the one before the last slot.
	low, high := int64(0), int64(now.Sub(after)/time.Second)+1
	for high-low > 1 {
		if middle := (low + high) / 2; passes(after.Add(time.Duration(middle) * time.Second)) {
			low = middle
		} else {
			high = middle
		}
	}
	due.Missed = s.next(after.Add(time.Duration(low) * time.Second))
	due.Many = s.hasMany(after, now)
	return due
}

func (s Schedule) hasMany(after, now time.Time) bool {
	for range Many + 1 {
		if after = s.next(after); after.IsZero() || after.After(now) {
			return false
		}
	}
	return true
}

// next returns the first slot after a moment, zero when there is none.
func (s Schedule) next(after time.Time) time.Time {
	slot := s.slots.Next(after.In(s.zone))
	for !s.hourly && isRepeated(slot) {
		slot = s.slots.Next(slot)
	}
	return slot
}

// isRepeated reports whether the wall clock showed the same time before, because it has been put back since.
func isRepeated(t time.Time) bool {
	changed, _ := t.ZoneBounds()
	if t.IsZero() || changed.IsZero() {
		return false
	}
	_, before := changed.Add(-time.Second).Zone()
	_, now := t.Zone()
	return t.Sub(changed) < time.Duration(before-now)*time.Second
}
