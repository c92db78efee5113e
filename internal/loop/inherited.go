package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/seed-69ecc383/kruise/internal/apply"
)

// How long a pass over an inherited owner waits for the cache of its Pods before it reads live: the Pods of one owner, or all Pods, as a
// SidecarSet does. A cache of Pods that are at rest tells only once a minute how far it has come.
const (
	inheritedPatience = 500 * time.Millisecond
	disruptsPatience  = 10 * time.Second
)

// inherited are the owners that were there when the controller began to lead. What the leader before it did last, the cache may not show
// yet: its watch lags behind, or the API server that answers it does. A plan from such a cache could use a budget a second time, create
// objects that are there, or delete the claims of Pods that it does not see. Our own writes cannot tell how new the cache has to be, as
// they can later on (apply.Freshness), so the API server is asked once, and what writes waits for that version, or is planned from a live
// read.
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

// inheriting has the owners that are there at first count as inherited.
func (l *Loop[O, S, T]) inheriting(watch Watch) Watch {
	asks := watch.Handler
	watch.Handler = handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) {
			if l.Concerns == nil || l.Concerns(*new(O), typed[O](e.Object)) { // of those that never have a pass, no memory is kept
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

// acts reports whether a pass writes something that a cache which is older can make wrong. A status that decides nothing can't.
func (l *Loop[O, S, T]) acts(looked look[O, S]) bool {
	if !looked.plan.Empty() {
		return true
	}
	return l.Exact && !equality.Semantic.DeepEqual(*l.StatusOf(looked.owner), l.Status(looked.state, looked.plan, apply.Outcome{}))
}

// trustCache says whether the cache shows all that was done for an inherited owner before this controller began to lead. Where it does not,
// it returns how long to wait until it is asked again, or zero if the cache has had its time.
func (l *Loop[O, S, T]) trustCache(ctx context.Context, owner O) (trusted bool, wait time.Duration, err error) {
	floor, since, err := l.inheritedFloor(ctx)
	if err != nil {
		return false, 0, err
	}
	pods, others, err := l.behind(ctx, floor)
	switch {
	case err != nil:
		return false, 0, fmt.Errorf("asking how far the cache has come: %w", err)
	case pods:
		patience, recheck := inheritedPatience, staleRecheck
		if l.Disrupts {
			patience, recheck = disruptsPatience, disruptsPatience/10
		}
		if l.Executor.Now().Sub(since) < patience {
			wait = recheck
		}
		return false, wait, nil
	case others:
		// A cache of objects at rest does not come as far soon. What was read live once is not believed to be older later.
		return l.Executor.WasReadLive(owner.GetUID()), 0, nil
	}
	l.inherited.forget(owner.GetUID())
	return true, 0, nil
}

// behind reports whether the caches of what passes read have not come as far as a version: that of the Pods which owners own or disrupt,
// and any other.
func (l *Loop[O, S, T]) behind(ctx context.Context, version string) (pods, others bool, err error) {
	for _, kind := range l.cachedKinds {
		isBehind, err := l.Executor.IsBehind(ctx, kind, version)
		switch {
		case err != nil:
			return false, false, err
		case kind == corev1.SchemeGroupVersion.WithKind("Pod") && (l.ownsPods() || l.Disrupts):
			pods = isBehind
		case !l.Disrupts: // reading all Pods live, as such a kind does, for the sake of others would be too dear
			others = others || isBehind
		}
	}
	return pods, others, nil
}

// kindsOf returns the kinds of objects whose events a controller hears by the cache, of which it has whole objects. Those that the cluster
// may not have are left out: what is written to them is tested against the version that was read.
func kindsOf(watches []Watch, scheme *runtime.Scheme) ([]schema.GroupVersionKind, error) {
	var out []schema.GroupVersionKind
	for _, watch := range watches {
		if _, isMetadata := watch.Object.(*metav1.PartialObjectMetadata); isMetadata || watch.Cache != nil || watch.For != nil {
			continue
		}
		kind, err := apiutil.GVKForObject(watch.Object, scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of %T: %w", watch.Object, err)
		}
		if !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	return out, nil
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
