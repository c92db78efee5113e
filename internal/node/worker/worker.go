// Package worker is what the workers of the daemon share: their configuration, what of the cluster they watch, what wakes them, and how
// often they write and try again.
package worker

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

// Config is what every worker is made of.
type Config struct {
	// Node is the name of the node.
	Node     string
	Runtimes *cri.Set
	Events   record.EventRecorder
	Now      func() time.Time
}

// Scope is what a worker watches of which kinds.
type Scope map[client.Object]cache.ByObject

// PodsOf returns the part of the Pods that are on a node.
func PodsOf(node string) Scope {
	return Scope{&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.nodeName", node)}}
}

// Named returns the part of a kind that is the object of the node's name.
func Named(object client.Object, node string) Scope {
	return Scope{object: {Field: fields.OneTermEqualSelector("metadata.name", node)}}
}

// An API server that is back after long must hear from a node before it counts as silent, which is after ten minutes; and thousands of
// daemons that fail at the same time must not send requests all the time.
const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 50 * time.Second
)

// Options returns those of a controller with so many concurrent reconciles, which retries after half a second, one, two and so on, and at
// last every 50 s.
func Options(concurrency int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, maxBackoff),
	}
}

// Trigger wakes a controller for what happens outside of the API. It has to be a source of the controller.
type Trigger struct {
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start implements source.Source.
func (t *Trigger) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	t.queue = queue
	return nil
}

// After requests a reconcile of an object after some time. It never blocks, and calls that come before the reconcile are answered by that
// one.
func (t *Trigger) After(wait time.Duration, key client.ObjectKey) {
	t.queue.AddAfter(reconcile.Request{NamespacedName: key}, wait)
}

var _ source.Source = &Trigger{}

// Delay returns how long the next write has to wait; 0 if it may be done now, which uses one of the limiter's tokens.
func Delay(limiter *rate.Limiter) time.Duration {
	reservation := limiter.Reserve()
	wait := reservation.Delay()
	if wait > 0 {
		reservation.Cancel()
	}
	return wait
}

// IsOlder reports whether an object that the cache returned is older than what the last write of it returned.
func IsOlder(cached, written client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	return err == nil && order < 0 && cached.GetUID() == written.GetUID()
}

// Sleep waits, and reports whether it did so to the end; the end of the context ends it early.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
