package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// How long a pass over an inherited owner waits for the cache of Pods before it reads live: the Pods of one owner, or all Pods, as a
// SidecarSet does. A cache of Pods that are at rest tells only once a minute how far it has come.
const (
	inheritedPatience = 500 * time.Millisecond
	disruptsPatience  = 10 * time.Second
)

// inherited are the owners that were there when the controller began to lead. What the leader before it did to their Pods last, the cache
// may not show yet: its watch lags behind, or the API server that answers it does. A plan from such a cache could use a budget a second
// time, create Pods that are there, or delete the claims of Pods that it does not see. Our own writes cannot tell how new the cache has to
// be, as they can later on (apply.Freshness), so the API server is asked once, and plans with writes wait for that version.
//
// An owner of which the cache does not tell at first, because its own watch lags behind, is known by its age. That compares the clocks of
// the API server and of this machine; where the former is behind, an owner counts as inherited that need not.
type inherited struct {
	mu     sync.Mutex
	owners map[types.UID]bool
	// began is when the controller began to lead.
	began time.Time
	// floor is the version of all Pods at the first question, which was asked at since; empty before.
	floor string
	since time.Time
}

// begin notes that the controller begins to lead.
func (i *inherited) begin(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.began = now
}

// came notes an owner that the cache tells of.
func (i *inherited) came(owner client.Object, isInitial bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !isInitial && owner.GetCreationTimestamp().After(i.began) {
		return
	}
	if i.owners == nil {
		i.owners = map[types.UID]bool{}
	}
	i.owners[owner.GetUID()] = true
}

func (i *inherited) forget(owner types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.owners, owner)
}

func (i *inherited) has(owner types.UID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.owners[owner]
}

// Begin notes that the controller begins to lead: what is there, others have worked on.
func (l *Loop[O, S, T]) Begin() { l.inherited.begin(l.Executor.Now()) }

// inheriting has the owners that are there at first count as inherited. Other kinds than those of Pods need no such care: each write of theirs
// is conditional on the version that it was planned from.
func (l *Loop[O, S, T]) inheriting(watch Watch) Watch {
	if !l.ownsPods() && !l.Disrupts {
		return watch
	}
	asks := watch.Handler
	watch.Handler = handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) {
			l.inherited.came(e.Object, e.IsInInitialList)
			asks.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // a cache that starts over may not tell that one was gone in between
				l.inherited.came(e.ObjectNew, false)
			}
			asks.Update(ctx, e, q)
		},
		DeleteFunc: asks.Delete,
	}
	return watch
}

// trustCache says whether the cache shows all that was done to the Pods of an owner before this controller began to lead. Where it does
// not, it returns how long to wait until it is asked again, or zero if the cache has had its time.
func (l *Loop[O, S, T]) trustCache(ctx context.Context, owner O) (trusted bool, wait time.Duration, err error) {
	if !l.inherited.has(owner.GetUID()) {
		return true, 0, nil
	}
	floor, since, err := l.inheritedFloor(ctx)
	if err != nil {
		return false, 0, err
	}
	behind, err := l.Executor.IsBehind(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), floor)
	if err != nil {
		return false, 0, fmt.Errorf("asking how far the cache has come: %w", err)
	}
	if !behind {
		l.inherited.forget(owner.GetUID())
		return true, 0, nil
	}
	patience, recheck := inheritedPatience, staleRecheck
	if l.Disrupts {
		patience, recheck = disruptsPatience, disruptsPatience/10
	}
	if l.Executor.Now().Sub(since) < patience {
		wait = recheck
	}
	return false, wait, nil
}

// inheritedFloor returns the version that Pods had when it was asked for first, and when that was. The API server is asked for one Pod,
// without a version that it may answer from: so the version of the list is one that no older write is missing of.
func (l *Loop[O, S, T]) inheritedFloor(ctx context.Context) (version string, since time.Time, err error) {
	l.inherited.mu.Lock()
	defer l.inherited.mu.Unlock()
	if l.inherited.floor == "" {
		var pods corev1.PodList
		if err := l.live.List(ctx, &pods, client.Limit(1)); err != nil {
			return "", since, fmt.Errorf("asking for the version of Pods: %w", err)
		}
		l.inherited.floor, l.inherited.since = pods.ResourceVersion, l.Executor.Now()
	}
	return l.inherited.floor, l.inherited.since, nil
}

// ownsPods reports whether the objects that an owner of the kind owns are Pods, too.
func (l *Loop[O, S, T]) ownsPods() bool { return slices.ContainsFunc(l.Owns, isPod) }
