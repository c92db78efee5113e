package proxy

import (
	"context"
	"slices"
	"time"
)

// Rule says what goes wrong with which requests. Of several that concern a request, the first one counts that chance lets happen.
type Rule struct {
	// Name is told in the record.
	Name string
	// Verbs are those of Kubernetes, such as "create" and "watch", and Resources those of requests, such as "pods" and "pods/status". Empty
	// for all; "*" means all but those that elect leaders and review access.
	Verbs, Resources []string
	// Share is how many of these requests it concerns, from 0 to 1.
	Share float64

	// Delay is how long a request waits before anything else happens, up to DelayMost if that is longer.
	Delay, DelayMost time.Duration
	// Code, if not zero, is answered in place of what the API server would, which hears nothing of the request.
	Code int
	// RetryAfter comes with that answer.
	RetryAfter time.Duration
	// Lost means that the API server does what it is asked for, and the connection breaks before its answer arrives.
	Lost bool
	// Hold is how long each event of a watch is held back, of watches that go on when the rule is set, too. Share does not count for it.
	Hold time.Duration
	// Cut breaks the connection of a watch instead of an event, of so many events as Share says.
	Cut bool

	delay time.Duration
}

// Writes returns the verbs that change something.
func Writes() []string { return []string{"create", "update", "patch", "delete", "deletecollection"} }

func (r *Rule) concerns(asked *Request) bool {
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, asked.Verb) {
		return false
	}
	return len(r.Resources) == 0 || slices.Contains(r.Resources, asked.Resource) ||
		slices.Contains(r.Resources, "*") && asked.IsWork()
}

// isOfEvents reports whether the rule is about events of watches, and not about requests.
func (r *Rule) isOfEvents() bool { return r.Hold > 0 || r.Cut }

// pause waits as long as the rule says, and is false if the client has gone meanwhile.
func (r *Rule) pause(ctx context.Context) bool {
	if r.delay == 0 {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(r.delay):
		return true
	}
}
