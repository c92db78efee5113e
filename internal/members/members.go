// Package members reads and writes what owners in the hub have in other clusters, their members.
//
// Nobody waits for a member. Look returns at once what its cache holds, if the cache is as new as what was last written there for the
// owner. Send has an executor of the member's own carry writes out in a goroutine, one at a time for each owner and member, and asks for a
// pass of the owner when they are done. A write whose outcome is unknown is followed by a live read in the same way.
package members

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/clusters"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/member"
)

// Member is a cluster as it can be read for one owner now.
type Member struct {
	member.Seen
	// Labels are those of the cluster object.
	Labels map[string]string
	// Cached reads what the hub has in the cluster; nil while that is not known to be as new as what was last written.
	Cached client.Reader
	// Serves reports whether the cluster serves a kind, and whether Cached has it.
	Serves func(schema.GroupVersionKind) (served, readable bool)
	// Refused is why the last writes failed; nil if they did not. They are not tried again before Wait is over.
	Refused error
	// Wait is when to look again although no event comes; zero for never.
	Wait time.Duration
}

// Options are what Members work with.
type Options struct {
	Registry Registry
	HubID    string
	Scheme   *runtime.Scheme
	// Events is where events on owners go.
	Events record.EventRecorder
	// Lists are the kinds of workloads, by empty lists of them.
	Lists func() []client.ObjectList
	// Tombstones is where it is stored what was left behind.
	Tombstones *Tombstones
	Now        func() time.Time
	// Parallel is how many writes are under way in one member for one owner; 0 for the usual number.
	Parallel int
	// Go begins what nobody waits for; in a goroutine if it is nil. Sleep waits there; it is time.Sleep if it is nil.
	Go    func(do func())
	Sleep func(time.Duration)
}

// Members are the clusters that owners have something in.
type Members struct {
	Options
	mu    sync.Mutex
	ask   func(types.NamespacedName)
	names map[types.UID]types.NamespacedName
	sites map[clusters.Ref]site
	tasks map[task]*progress
	// buried is what was left behind, and whether that is stored.
	buried map[stone]bool
}

// site is what writes to a member, as long as one connection to it lasts.
type site struct {
	*apply.Executor
	session int
}

// task is what one owner has to do with one member.
type task struct {
	owner types.UID
	ref   clusters.Ref
}

// progress is how far a task is.
type progress struct {
	busy bool
	// refused is why the last writes failed, pause how long the next ones wait for that, and until when.
	refused error
	pause   time.Duration
	until   time.Time
}

// Failed writes are tried again after a second, two, four, ... and a minute at most.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

const (
	// patience bounds what is done in a member at a time.
	patience = 30 * time.Second
	// recheck is when to look again at a cache that has not come as far as the writes yet: its own events normally come sooner.
	recheck = time.Second
	// parallelWrites is how many writes are under way in one member for one owner.
	parallelWrites = 8
)

// New returns Members that nobody has anything in yet.
func New(o Options) *Members {
	if o.Go == nil {
		o.Go = func(do func()) { go do() }
	}
	if o.Sleep == nil {
		o.Sleep = time.Sleep
	}
	o.Parallel = cmp.Or(o.Parallel, parallelWrites)
	return &Members{
		Options: o, ask: func(types.NamespacedName) {},
		names: map[types.UID]types.NamespacedName{}, sites: map[clusters.Ref]site{}, tasks: map[task]*progress{}, buried: map[stone]bool{},
	}
}

// Asked has passes over owners asked for by a function from now on.
func (m *Members) Asked(ask func(types.NamespacedName)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ask = ask
}

// Changed asks for a pass over an owner.
func (m *Members) Changed(owner types.UID) {
	m.mu.Lock()
	name, known := m.names[owner]
	ask := m.ask
	m.mu.Unlock()
	if known {
		ask(name)
	}
}

// Want says which members an owner needs, all of them each time.
func (m *Members) Want(owner plan.Object, places ...member.Place) {
	if len(places) == 0 {
		m.Forget(owner.GetUID())
		return
	}
	m.mu.Lock()
	m.names[owner.GetUID()] = client.ObjectKeyFromObject(owner)
	m.mu.Unlock()
	refs := make([]clusters.Ref, len(places))
	for i, p := range places {
		refs[i] = refOf(p)
	}
	m.Registry.Want(owner.GetUID(), refs...)
}

// Forget says that an owner needs none any more.
func (m *Members) Forget(owner types.UID) {
	m.mu.Lock()
	_, known := m.names[owner]
	if known {
		delete(m.names, owner)
		for of := range m.tasks {
			if of.owner == owner {
				delete(m.tasks, of)
			}
		}
		maps.DeleteFunc(m.buried, func(s stone, _ bool) bool { return s.owner == owner })
		for _, s := range m.sites {
			s.Forget(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: owner}})
		}
	}
	m.mu.Unlock()
	if known {
		m.Registry.Forget(owner)
	}
}

func refOf(p member.Place) clusters.Ref {
	return clusters.Ref{Kind: clusters.Kind(p.Kind), Namespace: p.Namespace, Name: p.Name}
}

func placeOf(ref clusters.Ref) member.Place {
	return member.Place{Kind: string(ref.Kind), Namespace: ref.Namespace, Name: ref.Name}
}

// Look returns a member as it can be read for an owner, at once.
func (m *Members) Look(ctx context.Context, owner plan.Object, place member.Place) Member {
	ref := refOf(place)
	view := m.Registry.Look(ref)
	out := Member{
		Seen:   member.Seen{Reason: view.Reason, Message: view.Message, ID: view.ID, LastContact: view.LastContact},
		Labels: view.Labels,
	}
	if view.Link == nil {
		return out
	}
	out.Serves = view.Link.Serves
	at := m.site(ref, view)
	m.mu.Lock()
	p := m.progress(task{owner.GetUID(), ref})
	busy := p.busy
	out.Refused, out.Wait = p.refused, max(p.until.Sub(m.Now()), 0)
	m.mu.Unlock()
	if busy {
		return out
	}
	switch fresh, err := at.Freshness(ctx, owner); {
	case err != nil, fresh == apply.Stale, at.session != view.Session: // it was connected to anew since it was looked at
		out.Wait = recheck
	case fresh == apply.Unknown:
		m.start(owner, ref, func(ctx context.Context, at site) error { return m.settle(ctx, at, owner, view.Link.Live()) })
	default:
		out.Cached = view.Link.Cached()
	}
	return out
}

// settle reads live what an owner has in a member: afterwards it is known what became of each write, and the cache has to come as far.
func (m *Members) settle(ctx context.Context, at site, owner plan.Object, live client.Reader) error {
	tracked := at.Tracked(owner.GetUID(), live)
	for _, list := range m.Lists() {
		err := tracked.List(ctx, list, client.InNamespace(owner.GetNamespace()),
			client.MatchingLabels{keys.HubID: m.HubID, keys.HubOwnerUID: string(owner.GetUID())})
		if err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("reading what is there: %w", err)
		}
	}
	at.NoteReadLive(owner.GetUID())
	return nil
}

// Send carries writes out in a member. While others are under way for the same owner it does nothing: the pass that follows them decides
// anew.
func (m *Members) Send(owner plan.Object, cluster string, stage plan.Stage) {
	m.start(owner, refOf(member.PlaceOf(cluster)), func(ctx context.Context, at site) error {
		return at.Run(ctx, owner, plan.Plan{Stages: []plan.Stage{here(stage)}}).Err()
	})
}

// here returns writes as those of the cluster that they are made in.
func here(stage plan.Stage) plan.Stage {
	out := make(plan.Stage, len(stage))
	for i, chain := range stage {
		for _, a := range chain {
			a.Cluster = ""
			out[i] = append(out[i], a)
		}
	}
	return out
}

// start does something for an owner in a member, in a goroutine, and asks for a pass afterwards.
func (m *Members) start(owner plan.Object, ref clusters.Ref, do func(context.Context, site) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, known := m.sites[ref]
	p := m.progress(task{owner.GetUID(), ref})
	if !known || p.busy {
		return
	}
	p.busy = true
	m.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := do(ctx, at)
		m.mu.Lock()
		p.done(err, m.Now())
		if now, known := m.sites[ref]; known && now.Executor != at.Executor {
			now.HasToReadLive(owner.GetUID()) // the caches of a newer connection may be older than these writes
		}
		m.mu.Unlock()
		m.Changed(owner.GetUID())
	})
}

func (p *progress) done(err error, now time.Time) {
	p.busy, p.refused = false, err
	if err == nil {
		p.pause, p.until = 0, time.Time{}
		return
	}
	p.pause = min(max(firstPause, 2*p.pause), maxPause)
	p.until = now.Add(p.pause)
}

func (m *Members) progress(of task) *progress {
	if m.tasks[of] == nil {
		m.tasks[of] = &progress{}
	}
	return m.tasks[of]
}

// keepOnly drops what writes to members that nobody is connected to any more, and holds their caches.
func (m *Members) keepOnly(known []clusters.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := map[clusters.Ref]bool{}
	for _, ref := range known {
		kept[ref] = true
	}
	for of, p := range m.tasks {
		kept[of.ref] = kept[of.ref] || p.busy
	}
	maps.DeleteFunc(m.sites, func(ref clusters.Ref, _ site) bool { return !kept[ref] })
}

// site returns what writes to a member. A new connection begins with nothing: its caches were filled after all that was written before. An
// older one does not come back.
func (m *Members) site(ref clusters.Ref, view View) site {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.sites[ref]; ok && at.session >= view.Session {
		return at
	}
	at := site{session: view.Session, Executor: &apply.Executor{Config: apply.Config{
		Writer: view.Link.Writer(), Scheme: m.Scheme, Now: m.Now, Events: m.Events, Parallel: m.Parallel,
		Seen: func(_ context.Context, kind schema.GroupVersionKind) (string, error) { return view.Link.Seen(kind) },
		Controls: func(object, owner plan.Object) bool {
			return object.GetLabels()[keys.HubID] == m.HubID && object.GetLabels()[keys.HubOwnerUID] == string(owner.GetUID())
		},
	}}}
	m.sites[ref] = at
	return at
}
