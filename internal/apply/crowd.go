package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// glance is how soon a status that is kept back for the sake of others is looked at again.
	glance = time.Second
	// window is how far back it is looked whether many statuses change: short enough that the first of a rush are few.
	window = time.Second / 4
	// lull is how long no more than usual have to change for a rush to be over: they may all change once a second.
	lull = time.Second
)

// crowd keeps the statuses of many owners that all change at once within a rate. Each Pod that is created may change what several owners count: at
// hundreds a second the API server would be busier with counts, which nobody can read that fast, than with the Pods.
//
// As long as no more statuses change in a window than the rate allows, it keeps none back. With more, the owners whose status has changed take
// turns, rate of them a second, and each writes what is true when its turn comes. After a lull those that still wait write at the next glance: every
// count is true within two seconds of the last change, as fast as the API server takes them.
//
// Example: at a rate of 30, the statuses of 300 owners that change all the time are up to ten seconds old.
type crowd struct {
	rate int
	// recent are when the last changes were seen, as many as the rate allows in a window, oldest first from the place of the next one.
	recent []time.Time
	place  int
	// rush is when a rush will be over if nothing more changes.
	rush time.Time
	// last is the last turn that was given away, and waiting are those who have one.
	last    time.Time
	waiting map[types.UID]turn
	// told is, for each owner, the generation of which a final status was let through.
	told map[types.UID]int64
}

// turn is when an owner's status may be written, and what it was when it was last seen.
type turn struct {
	at     time.Time
	status string
}

func newCrowd(rate int) *crowd {
	return &crowd{rate: rate, recent: make([]time.Time, max(1, rate*int(window)/int(time.Second))), waiting: map[types.UID]turn{}, told: map[types.UID]int64{}}
}

// wait returns how long it is too early to write the status of an owner, which differs from the stored one.
func (c *crowd) wait(owner types.UID, status string, now time.Time) time.Duration {
	own, waits := c.waiting[owner]
	if !waits || own.status != status {
		c.change(now)
	}
	switch {
	case !c.isRush(now):
		c.last, own.at = now, now
	case !waits:
		if c.last.Before(now) {
			c.last = now
		}
		c.last = c.last.Add(time.Second / time.Duration(c.rate))
		own.at = c.last
	}
	own.status = status
	c.waiting[owner] = own
	return min(max(own.at.Sub(now), 0), glance)
}

// change notes that a status has changed.
func (c *crowd) change(now time.Time) {
	if now.Sub(c.recent[c.place]) < window {
		c.rush = now.Add(lull)
	}
	c.recent[c.place] = now
	c.place = (c.place + 1) % len(c.recent)
}

// isRush reports whether more statuses have changed in a window, not long ago, than are to be written in one.
func (c *crowd) isRush(now time.Time) bool { return now.Before(c.rush) }

// isNews reports whether a final status is the first of its generation. That all is done again after a Pod more has come is no news.
func (c *crowd) isNews(owner types.UID, generation int64) bool {
	told, any := c.told[owner]
	c.told[owner] = generation
	return !any || told != generation
}

// leave gives an owner's turn up: its status is written, or is what is stored again.
func (c *crowd) leave(owner types.UID) { delete(c.waiting, owner) }

func (c *crowd) forget(owner types.UID) {
	delete(c.waiting, owner)
	delete(c.told, owner)
}
