// Package retry says how long the workers of a daemon wait before they try again what has failed.
package retry

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An API server that is back after long must hear of what has happened meanwhile before it takes a node for silent, which is after ten minutes; and
// thousands of daemons that fail at the same time must not ask it all the time.
const (
	first   = 500 * time.Millisecond
	longest = 50 * time.Second
)

// Limiter returns what says when a request is tried again: after half a second, one, two and so on, and at last every 50 s.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest)
}
