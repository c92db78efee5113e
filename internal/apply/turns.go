package apply

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	// burstWindow is the time whose changes may come at once before owners take turns: short, so that the first of many are few.
	burstWindow = time.Second / 4
	// quietAfter is how long no more statuses than the rate have to change for turns to end.
	quietAfter = time.Second
	// maxTurnWait is how soon a status that waits for its turn is looked at again.
	maxTurnWait = time.Second
)

// turns keeps the statuses of many owners that all change at once within a rate. Each Pod that is created may change what several owners count: at
// hundreds a second the API server would be busier with counts, which nobody can read that fast, than with the Pods.
//
// As long as no more statuses change than the rate, each is written at once. With more, the owners whose status has changed take turns, and each
// writes what is true at its turn. When it is quiet again those that still wait write within maxTurnWait: every count is true within two seconds of
// the last change.
//
// Example: at a rate of 30, the statuses of 300 owners that change all the time are up to ten seconds old.
type turns struct {
	limit rate.Limit
	// changes allows as many changes as do without turns; until busyUntil there were more.
	changes   *rate.Limiter
	busyUntil time.Time
	// next gives the turns away.
	next *rate.Limiter
}

// turn is when an owner's status may be written, and what it was when it was last seen; the zero turn is none.
type turn struct {
	at     time.Time
	status string
}

func newTurns(perSecond int) *turns {
	burst := max(1, perSecond*int(burstWindow)/int(time.Second))
	return &turns{limit: rate.Limit(perSecond), changes: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// wait returns how long it is too early to write a status, which differs from the stored one, and gives its owner a turn.
func (t *turns) wait(own *turn, status string, now time.Time) time.Duration {
	if own.status != status && !t.changes.AllowN(now, 1) {
		if !t.isBusy(now) {
			t.next = rate.NewLimiter(t.limit, 1)
		}
		t.busyUntil = now.Add(quietAfter)
	}
	switch {
	case !t.isBusy(now):
		own.at = now
	case own.at.IsZero():
		own.at = now.Add(t.next.ReserveN(now, 1).DelayFrom(now))
	}
	own.status = status
	return min(max(own.at.Sub(now), 0), maxTurnWait)
}

func (t *turns) isBusy(now time.Time) bool { return now.Before(t.busyUntil) }
