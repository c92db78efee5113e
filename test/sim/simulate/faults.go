package simulate

import (
	"fmt"
	"math/rand"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Faults are the chances, from 0 to 1, that something goes wrong with a write of a controller.
type Faults struct {
	// Crash ends the process before or after the write, with equal chances.
	Crash float64
	// Lost makes the write happen, but its answer gets lost.
	Lost float64
	// Dropped makes the request get lost, which looks the same to the controller.
	Dropped float64
	// Late makes the controller give up on a write that happens some time later.
	Late float64
	// Conflict refuses the write although nothing has changed, as the API server does now and then under load.
	Conflict float64
	// Denied refuses a create, as a quota does.
	Denied float64
	// Refused refuses a change of a spec, as a budget does.
	Refused float64
	// Overload is the chance that a request, reads included, finds the API server overloaded. It is for a while then, and refuses requests
	// or takes seconds to answer them.
	Overload float64
	// Behind is the most events of a kind that the cache of a controller which starts again does not know yet, although the one before it
	// may have known them: it is a replica whose watch lags behind, or its API server does.
	Behind int
}

// CrashPoint is a write at which a controller crashes.
type CrashPoint struct {
	// Write is its number, from 1 on; 0 for none.
	Write int
	// After means that the write happens, and its answer does not arrive.
	After bool
}

// attempt is what a controller tries to write.
type attempt int

const (
	creation attempt = iota
	specChange
	anyOther
)

// fate is what becomes of a write.
type fate int

const (
	succeeds fate = iota
	crashesBefore
	crashesAfter
	answerLost
	requestLost
	happensLate
	conflicts
	isDenied
	isRefused
)

func (f Faults) draw(r *rand.Rand, tries attempt) fate {
	chance := r.Float64()
	for _, candidate := range []struct {
		share float64
		fate  fate
	}{
		{f.Crash / 2, crashesBefore}, {f.Crash / 2, crashesAfter}, {f.Lost, answerLost}, {f.Dropped, requestLost},
		{f.Late, happensLate}, {f.Conflict, conflicts},
	} {
		if chance < candidate.share {
			return candidate.fate
		}
		chance -= candidate.share
	}
	switch {
	case tries == creation && chance < f.Denied:
		return isDenied
	case tries == specChange && chance < f.Refused:
		return isRefused
	}
	return succeeds
}

// errNoAnswer is what a controller sees of a write without an answer. It is not an error of the API.
func errNoAnswer(what string) error { return fmt.Errorf("%s: connection reset by peer", what) }

// through lets a write go through the faults of the connection.
func (c *Client) through(key Key, tries attempt, write func(by) error) error {
	who := by{actor: c.actor, pass: c.pass}
	if c.dead {
		return errNoAnswer("writing " + key.Name)
	}
	if err := c.reach(); err != nil {
		return err
	}
	becomes := c.faults.draw(c.rand, tries)
	if c.beforeWrite != nil {
		becomes = c.beforeWrite(becomes)
	}
	switch becomes {
	case crashesBefore:
		c.dead = true
		return errNoAnswer("writing " + key.Name)
	case crashesAfter:
		err := write(who)
		c.dead = true
		return err
	case answerLost:
		if err := write(who); err != nil {
			return err
		}
		return errNoAnswer("writing " + key.Name)
	case requestLost:
		return apierrors.NewTimeoutError("request did not complete within the allowed duration", 0)
	case happensLate:
		who.late = true
		// Nobody waits for the answer any more.
		c.late = append(c.late, func() { _ = write(who) })
		return apierrors.NewTimeoutError("request did not complete within the allowed duration", 0)
	case conflicts:
		return apierrors.NewConflict(resourceOf(key), key.Name, fmt.Errorf("the object has been modified"))
	case isDenied:
		return apierrors.NewForbidden(resourceOf(key), key.Name, fmt.Errorf("exceeded quota"))
	case isRefused:
		return apierrors.NewForbidden(resourceOf(key), key.Name, fmt.Errorf("the budget is used up"))
	default:
		return write(who)
	}
}

// The most time that the API server is overloaded, and that it takes for an answer then: longer than our caches may lag behind.
const (
	maxOverload = 45 * time.Second
	maxAnswer   = 12 * time.Second
)

// reach has a request wait for an API server that is overloaded, or fails with what that answers in place of doing what it is asked for.
func (c *Client) reach() error {
	if c.faults.Overload == 0 {
		return nil
	}
	if !c.cluster.now.Before(c.overloaded) {
		if c.rand.Float64() >= c.faults.Overload {
			return nil
		}
		c.overloaded = c.cluster.now.Add(time.Duration(c.rand.Int63n(int64(maxOverload))))
	}
	switch c.rand.Intn(3) {
	case 0:
		return apierrors.NewTooManyRequests("the API server is overloaded", 1)
	case 1:
		return apierrors.NewServiceUnavailable("the API server is overloaded")
	}
	c.cluster.Sleep(time.Duration(c.rand.Int63n(int64(maxAnswer))))
	return nil
}

// LandLate makes the oldest of the writes happen that their controller gave up on, and reports whether there was one.
func (c *Client) LandLate() bool {
	if len(c.late) == 0 {
		return false
	}
	happen := c.late[0]
	c.late = c.late[1:]
	happen()
	return true
}
