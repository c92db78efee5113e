package simulate

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// How long a request that failed waits before it is tried again: twice as long each time.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 1000 * time.Second
)

// Queue is a controller's work queue on the cluster's clock. Only what is added to it is ever looked at, so that an event that a controller
// does not listen to, or a time that it does not ask for, shows as an owner that is left behind.
type Queue struct {
	cluster  *Cluster
	due      map[reconcile.Request]time.Time
	failures map[reconcile.Request]int
}

// NewQueue returns an empty queue.
func (c *Cluster) NewQueue() *Queue {
	return &Queue{cluster: c, due: map[reconcile.Request]time.Time{}, failures: map[reconcile.Request]int{}}
}

// Add asks for a look at once.
func (q *Queue) Add(r reconcile.Request) { q.AddAfter(r, 0) }

// AddAfter asks for a look after a while, or sooner if one was asked for already.
func (q *Queue) AddAfter(r reconcile.Request, wait time.Duration) {
	at := q.cluster.now.Add(wait)
	if due, ok := q.due[r]; !ok || at.Before(due) {
		q.due[r] = at
	}
}

// AddRateLimited asks for another try.
func (q *Queue) AddRateLimited(r reconcile.Request) {
	wait := lastRetry
	if n := q.failures[r]; n < 18 {
		wait = min(wait, firstRetry<<n)
	}
	q.failures[r]++
	q.AddAfter(r, wait)
}

// Forget ends the waiting longer and longer.
func (q *Queue) Forget(r reconcile.Request) { delete(q.failures, r) }

// NumRequeues returns how often in a row the request has failed.
func (q *Queue) NumRequeues(r reconcile.Request) int { return q.failures[r] }

// Next returns the request that is due first, and when; ok is false for an empty queue.
func (q *Queue) Next() (r reconcile.Request, at time.Time, ok bool) {
	requests := make([]reconcile.Request, 0, len(q.due))
	for request := range q.due {
		requests = append(requests, request)
	}
	if len(requests) == 0 {
		return r, at, false
	}
	first := slices.MinFunc(requests, func(a, b reconcile.Request) int {
		if order := q.due[a].Compare(q.due[b]); order != 0 {
			return order
		}
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	return first, q.due[first], true
}

// Take removes a request.
func (q *Queue) Take(r reconcile.Request) { delete(q.due, r) }

// Done, Get, Len, ShutDown, ShutDownWithDrain and ShuttingDown complete the interface of a work queue; nothing here runs beside anything
// else.

// Done does nothing.
func (q *Queue) Done(reconcile.Request) {}

// Get returns the request that is due first.
func (q *Queue) Get() (reconcile.Request, bool) {
	r, _, ok := q.Next()
	q.Take(r)
	return r, !ok
}

// Len returns the number of requests.
func (q *Queue) Len() int { return len(q.due) }

// ShutDown does nothing.
func (q *Queue) ShutDown() {}

// ShutDownWithDrain does nothing.
func (q *Queue) ShutDownWithDrain() {}

// ShuttingDown is never true.
func (q *Queue) ShuttingDown() bool { return false }
