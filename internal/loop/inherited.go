package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// How long a pass over an inherited owner waits for the cache before it reads live: the owner and what is its own, or all objects of a kind,
// as a SidecarSet does. A cache of a kind that is at rest tells only once a minute how far it has come.
const (
	inheritedPatience = 500 * time.Millisecond
	readsAllPatience  = 10 * time.Second
)

// inherited are the owners that were there when the controller began to lead. What the leader before it saw of their specs and did to their
// objects last, the cache may not show yet: its watch lags behind, or the API server that answers it does. A plan from such a cache could
// use a budget a second time, create what is there, roll back to a template that is given up, or run a slot that is long over. Our own writes
// cannot tell how new the cache has to be, as they can later on (apply.Freshness), so the API server is asked once for each kind, and for
// each owner with something to do, and plans with writes wait for those versions.
//
// An owner of which the cache does not tell at first, because its own watch lags behind, is known by its age. That compares the clocks of
// the API server and of this machine; where the former is behind, an owner counts as inherited that need not.
type inherited struct {
	mu     sync.Mutex
	owners map[types.UID]bool
	// began is when the controller began to lead.
	began time.Time
	// floors are the versions that the kinds had at the first question, which was asked at since; none before.
	floors map[schema.GroupVersionKind]string
	since  time.Time
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

// inheriting has the owners that are there at first count as inherited.
func (l *Loop[O, S, T]) inheriting(watch Watch) Watch {
	asks := watch.Handler
	watch.Handler = handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) {
			if l.Concerns == nil || l.Concerns(*new(O), typed[O](e.Object)) {
				l.inherited.came(e.Object, e.IsInInitialList)
			}
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

// trustCache says whether the cache shows all that was done for an owner before this controller began to lead. Where it does not, it
// returns how long to wait until it is asked again, or zero if the cache has had its time.
func (l *Loop[O, S, T]) trustCache(ctx context.Context, owner O) (trusted bool, wait time.Duration, err error) {
	if !l.inherited.has(owner.GetUID()) {
		return true, 0, nil
	}
	floors, since, err := l.inheritedFloors(ctx)
	if err != nil {
		return false, 0, err
	}
	for kind, floor := range floors {
		behind, err := l.Executor.IsBehind(ctx, kind, floor)
		if err != nil {
			return false, 0, fmt.Errorf("asking how far the cache has come: %w", err)
		}
		if behind {
			return false, l.untilLive(since), nil
		}
	}
	if isLast, err := l.isLast(ctx, owner); err != nil || !isLast {
		return false, l.untilLive(since), err
	}
	l.inherited.forget(owner.GetUID())
	return true, 0, nil
}

// untilLive returns when to ask a cache again that was asked for the first time a while ago; zero if it has had its time.
func (l *Loop[O, S, T]) untilLive(since time.Time) time.Duration {
	patience, recheck := inheritedPatience, staleRecheck
	if l.ReadsAll {
		patience, recheck = readsAllPatience, readsAllPatience/10
	}
	if l.Executor.Now().Sub(since) < patience {
		return recheck
	}
	return 0
}

// isLast reports whether an owner is in the cache as the API server has it.
func (l *Loop[O, S, T]) isLast(ctx context.Context, cached O) (bool, error) {
	owner := newObject[O]()
	if err := l.live.Get(ctx, client.ObjectKeyFromObject(cached), owner); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("asking for the version of %s: %w", cached.GetName(), err)
	}
	return owner.GetUID() == cached.GetUID() && owner.GetResourceVersion() == cached.GetResourceVersion(), nil
}

// inheritedFloors returns the versions that the kinds had which the plan of an owner depends on when they were asked for first, and when that
// was. The API server is asked for one object, without a version that it may answer from: so the version of the list is one that no older
// write is missing of.
func (l *Loop[O, S, T]) inheritedFloors(ctx context.Context) (versions map[schema.GroupVersionKind]string, since time.Time, err error) {
	l.inherited.mu.Lock()
	defer l.inherited.mu.Unlock()
	if l.inherited.floors != nil {
		return l.inherited.floors, l.inherited.since, nil
	}
	floors := map[schema.GroupVersionKind]string{}
	for _, object := range l.actsOn() {
		kind, err := apiutil.GVKForObject(object, l.Executor.Scheme)
		if err != nil {
			return nil, since, fmt.Errorf("finding the kind of %T: %w", object, err)
		}
		empty, err := l.Executor.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			return nil, since, fmt.Errorf("making a list of %s: %w", kind.Kind, err)
		}
		list := empty.(client.ObjectList)
		if err := l.live.List(ctx, list, client.Limit(1)); err != nil {
			return nil, since, fmt.Errorf("asking for the version of %s: %w", kind.Kind, err)
		}
		floors[kind] = list.GetResourceVersion()
	}
	l.inherited.floors, l.inherited.since = floors, l.Executor.Now()
	return floors, l.inherited.since, nil
}

// actsOn returns the kinds that the cache has to be new of. What owners have besides Pods changes with these, and rarely enough that its
// cache could not tell how far it has come.
func (l *Loop[O, S, T]) actsOn() []client.Object {
	if l.ownsPods() {
		return []client.Object{&corev1.Pod{}}
	}
	return slices.Concat(l.Owns, l.ActsOn)
}

// ownsPods reports whether the objects that an owner of the kind owns are Pods, too.
func (l *Loop[O, S, T]) ownsPods() bool { return slices.ContainsFunc(l.Owns, isPod) }
