package scene

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Timeout is how long a test waits for what has to happen. What takes seconds on two processors of their own took minutes on busy ones.
const Timeout = 5 * time.Minute

// QuietPeriod is how long a test watches that something does not happen.
const QuietPeriod = 2 * time.Second

// pollInterval is how often a test looks whether something has happened, at first; the longer it has waited, the longer until it looks
// again, up to pollLimit. Dozens of tests that look 20 times a second have the API server do little else.
const (
	pollInterval = 50 * time.Millisecond
	pollLimit    = 250 * time.Millisecond
)

// untilPoll returns how long until a test looks again that has waited for a while: a twentieth of that, within the limits.
func untilPoll(waited time.Duration) time.Duration {
	return min(max(waited/20, pollInterval), pollLimit)
}

// Test is a test that can wait.
type Test struct {
	*testing.T
	// Ctx ends with the test.
	Ctx context.Context
	// Timeout is how long the test waits for what has to happen.
	Timeout time.Duration
	// Describe, if any, tells of what the test is about, for the reader of a failure.
	Describe func() string
}

// NewTest returns a test with the usual timeout, and with nothing to describe.
func NewTest(t *testing.T) *Test {
	return &Test{T: t, Ctx: t.Context(), Timeout: Timeout}
}

// Must ends the test if there is an error.
func (t *Test) Must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until check has nothing to complain about.
func (t *Test) Eventually(what string, check func() error) {
	t.Helper()
	t.Within(t.Timeout, what, check)
}

// Within does the same with a timeout of its own.
func (t *Test) Within(limit time.Duration, what string, check func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		waited := time.Since(began)
		if waited > limit {
			t.Fatalf("waiting until %s: %v\n%s", what, err, t.described())
		}
		time.Sleep(untilPoll(waited))
	}
}

// Always checks again and again for a while that there is nothing to complain about.
func (t *Test) Always(duration time.Duration, what string, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(duration); time.Now().Before(deadline); time.Sleep(pollInterval) {
		if err := check(); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, t.described())
		}
	}
}

// Never checks for a while that something does not happen.
func (t *Test) Never(what string, happens func() bool) {
	t.Helper()
	t.Always(QuietPeriod, "it must not happen that "+what, func() error {
		if happens() {
			return errors.New("it did")
		}
		return nil
	})
}

// AtRest waits until something has stayed the same for a while, and returns it: what was still under way when the test came here is over
// then.
func (t *Test) AtRest(quiet time.Duration, what string, read func() string) string {
	t.Helper()
	is, since := read(), time.Now()
	t.Within(t.Timeout+quiet, what+" has stayed the same for "+quiet.String(), func() error {
		if now := read(); now != is {
			defer func() { is, since = now, time.Now() }()
			return fmt.Errorf("it was %s and is %s", is, now)
		}
		if so := time.Since(since); so < quiet {
			return fmt.Errorf("it has been %s for %s", is, so)
		}
		return nil
	})
	return is
}

// Afterwards returns a context for what is done when the test's own has ended.
func (t *Test) Afterwards() context.Context { return context.WithoutCancel(t.Ctx) }

func (t *Test) described() string {
	if t.Describe == nil {
		return ""
	}
	return t.Describe()
}
