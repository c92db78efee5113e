// Package clock tells the time by the API server.
//
// Kruise compares the time with times that others have written: creations by the API server, permissions of budgets and leases of room by
// other managers, starts of jobs by the leader before. By a clock of its own that is an hour behind, a manager would take a permission that
// it gives for one that has ended, and by one that is an hour ahead, it would end jobs early. So all managers go by one clock, that of the
// API server, which tells its time with each answer, to the second.
package clock

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// tolerance is by how much answers may differ from the clock, besides the second to which they tell the time, until it is set. Clocks that
// are kept by NTP differ by less, so that no manager with such a clock ever sets it.
const tolerance = time.Second

// Clock tells the API server's time, to two seconds and the time that one request takes. Until the first answer it is that of this machine.
// It runs on by the time that passes, so that nothing changes for it when the clock of this machine is set.
type Clock struct {
	// running returns for how long this process has been running.
	running func() time.Duration
	log     logr.Logger

	mu sync.Mutex
	// start is what the API server's clock showed when this process started.
	start time.Time
}

// New returns a clock that has not heard of an API server.
func New(log logr.Logger) *Clock {
	start := time.Now()
	return &Clock{running: func() time.Duration { return time.Since(start) }, log: log, start: start.Round(0)}
}

// Now returns the API server's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.start.Add(c.running())
}

// Transport returns a transport by whose answers the clock is set.
func (c *Clock) Transport(next http.RoundTripper) http.RoundTripper { return transport{next, c} }

type transport struct {
	next  http.RoundTripper
	clock *Clock
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := t.clock.running()
	answer, err := t.next.RoundTrip(r)
	if err != nil || !isServedByItself(r.URL.Path) {
		return answer, err
	}
	if told, unreadable := http.ParseTime(answer.Header.Get("Date")); unreadable == nil {
		t.clock.observe(sent, told)
	}
	return answer, nil
}

// WrappedRoundTripper lets others find the transport that this one adds to.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isServedByItself reports whether the API server answers a request to a path itself. Those to other groups of APIs may be answered by
// another server, with another clock.
func isServedByItself(path string) bool {
	return strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/coordination.k8s.io/")
}

// observe sets the clock if it can't be right. The request was sent when this process had run for so long, and is answered now. At some
// moment in between, the API server's time was the one that it has told, or up to a second later.
//
// Example: told 10:00:00. A request that was sent when the clock showed 10:00:02.1 proves that the clock is ahead. An answer that comes
// when it shows 9:59:58.9 proves that it is behind.
func (c *Clock) observe(sent time.Duration, told time.Time) {
	answered := c.running()
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.start
	middle := told.Add(time.Second / 2).In(c.start.Location())
	switch {
	case c.start.Add(sent).After(told.Add(time.Second + tolerance)):
		c.start = middle.Add(-sent)
	case c.start.Add(answered).Before(told.Add(-tolerance)):
		c.start = middle.Add(-answered)
	default:
		return
	}
	c.log.Info("The clock of this machine is not that of the API server, which counts", "correction", c.start.Sub(was).String())
}
