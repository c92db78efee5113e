package spread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
)

const (
	// maxTries is how often the ledger is tried to be written that others write at the same time.
	maxTries = 8
	// looks is how often it is looked for room that others may give back, while a Pod waits for it.
	looks = 50
	// writeTimeout is how long a write of the ledger may take, whether or not the Pod that it is for can wait as long.
	writeTimeout = 5 * time.Second
)

// Config is what a Ledger works with.
type Config struct {
	// Cached knows WorkloadSpreads, and Pods by the index observe.BySpread; Live reads and writes around the cache.
	Cached client.Reader
	Live   client.Client
	// SeenPods returns the resource version up to which the cache has seen Pods.
	SeenPods func(context.Context) (string, error)
	// Holder tells the entries of this process from those of all others.
	Holder string
	// Pause is the wait before a write is tried again because somebody else was first; it doubles with every further try.
	Pause time.Duration
	// Patience is how long a Pod waits for room that another manager has set aside.
	Patience time.Duration
	Now      func() time.Time
	// Metrics may be nil.
	Metrics *Metrics
}

// Ledger gives room.
type Ledger struct {
	Config
	count   atomic.Int64
	ended   atomic.Bool
	spreads sync.Map // of *memory by types.UID
	// gone are the entries of Pods that were seen and are gone, for as long as they may be in a status, by WorkloadSpread.
	goneMu sync.Mutex
	gone   map[client.ObjectKey]map[string]time.Time
	// due is signalled when room that is set aside may have to be given back.
	due chan struct{}
}

// NewLedger returns a Ledger.
func NewLedger(c Config) *Ledger {
	return &Ledger{Config: c, due: make(chan struct{}, 1), gone: map[client.ObjectKey]map[string]time.Time{}}
}

// memory is what is kept of a WorkloadSpread.
type memory struct {
	key client.ObjectKey
	// waiting is how many Pods wait for the lock.
	waiting atomic.Int32
	// freed means that a Pod is gone or over that was counted.
	freed atomic.Bool
	sync.Mutex
	// written is the WorkloadSpread as it was last written here; nil once the cache has seen it.
	written *v1beta1.WorkloadSpread
	limits  []int32
	held    map[rules.Place][]held
	last    map[rules.Place]lease
	// used is when room was last given from what is held.
	used time.Time
	// passedOver are the entries of others that did not come back when they were waited for.
	passedOver map[string]bool
	// vain is when a Pod has waited in vain for the news that another one is gone.
	vain time.Time
}

// held is room that is set aside.
type held struct {
	entry string
	at    time.Time
}

type lease struct {
	ahead int32
	at    time.Time
}

// Request is a Pod that asks for room.
type Request struct {
	// Spread is the WorkloadSpread as the cache has it, Fill how Pods fill its subsets, Total how many the workload is to have.
	Spread *v1beta1.WorkloadSpread
	rules.Fill
	Total   int32
	Version string
	// Wanted tells how many Pods the controller of the Pod is to have; nil where nothing does.
	Wanted Wanted
}

// Give gives room to a Pod that is about to be stored. Where the context has ended meanwhile, the API server waits no more and refuses the
// Pod: its room is kept for the next one, which is likely the same Pod, created once more.
func (l *Ledger) Give(ctx context.Context, r Request) (rules.Given, error) {
	if given, ok := r.free(); ok {
		return given, nil
	}
	m := l.memoryOf(r.Spread)
	m.waiting.Add(1)
	m.Lock()
	defer m.Unlock()
	m.waiting.Add(-1)
	g := &giving{Ledger: l, memory: m, Request: r}
	m.limits = r.Limits
	given, err := g.run(ctx)
	if gone := ctx.Err(); gone != nil && err == nil {
		if given.Entry != "" { // as old as it is: it leaves the ledger by its age
			at := g.place(given.Subset)
			m.held[at] = append(m.held[at], g.taken)
		}
		return nothing(), gone
	}
	return given, err
}

// free returns what a Pod is given without looking at what the subsets have; false if that matters.
func (r *Request) free() (rules.Given, bool) {
	if r.Floors != nil || r.Weights != nil {
		return nothing(), false
	}
	none := make([]int, len(r.Limits))
	switch i := r.Next(none, rules.Open(r.Spread)); {
	case i < 0:
		return nothing(), true
	case r.Limits[i] == rules.Unlimited:
		return rules.Given{Subset: i, Cost: r.CostIn(i, 0)}, true
	}
	return nothing(), false
}

func (l *Ledger) memoryOf(s *v1beta1.WorkloadSpread) *memory {
	found, _ := l.spreads.LoadOrStore(s.UID, &memory{
		key: client.ObjectKeyFromObject(s), held: map[rules.Place][]held{}, last: map[rules.Place]lease{}, passedOver: map[string]bool{},
	})
	return found.(*memory)
}

// giving is the way of one Pod to its room, under the lock of the memory.
type giving struct {
	*Ledger
	*memory
	Request
	// stored is the WorkloadSpread in its newest known version, counted the same with what was counted here since.
	stored, counted *v1beta1.WorkloadSpread
	// taken is the room that the Pod was given, if that is counted.
	taken held
}

func (g *giving) run(ctx context.Context) (rules.Given, error) {
	if err := g.find(ctx); err != nil {
		return nothing(), err
	}
	backoff := wait.Backoff{Duration: g.Pause, Factor: 2, Jitter: 0.5, Steps: maxTries}
	for range maxTries {
		subset, err := g.choose(ctx)
		if err != nil || subset < 0 {
			return nothing(), err
		}
		before := g.has()[subset]
		given := rules.Given{Subset: subset, Cost: g.CostIn(subset, before)}
		if !g.IsCounted(subset, before) {
			return given, nil
		}
		if given.Entry = g.pop(subset); given.Entry != "" {
			return given, nil
		}
		given.Entry, err = g.lease(ctx, subset)
		switch {
		case apierrors.IsNotFound(err):
			return nothing(), nil // it is gone: the Pod is created as if it had never been there
		case !apierrors.IsConflict(err):
			return given, err
		}
		if err := pause(ctx, backoff.Step()); err != nil {
			return nothing(), err
		}
		if err := g.read(ctx); err != nil {
			return nothing(), client.IgnoreNotFound(err)
		}
	}
	return nothing(), fmt.Errorf("the ledger of WorkloadSpread %s was written by others each time: try again", g.key)
}

// choose returns the first subset with room; -1 if there is none. Where it would pass over a subset that is full, it counts Pods anew that
// may have gone, and waits a little for the news of one that must have gone, and for room that others have set aside.
func (g *giving) choose(ctx context.Context) (int, error) {
	subset := g.first()
	if len(g.earlier(subset)) == 0 {
		return subset, nil
	}
	if err := g.recount(ctx); err != nil {
		return -1, err
	}
	if err := g.awaitNews(ctx); err != nil {
		return -1, err
	}
	if subset = g.first(); len(g.earlier(subset)) == 0 {
		return subset, nil
	}
	for range looks {
		if len(g.setAside(subset)) == 0 {
			return subset, nil
		}
		if err := pause(ctx, g.Patience/looks); err != nil {
			return -1, err
		}
		if err := g.find(ctx); err != nil {
			return -1, err
		}
		subset = g.first()
	}
	for _, entry := range g.setAside(subset) {
		g.passedOver[entry] = true
	}
	return subset, nil
}

// has returns how many Pods each subset has, without the room that is held here and may be given.
func (g *giving) has() []int {
	out := rules.Counts(g.counted, g.Version, g.Total)
	for i := range out {
		for _, h := range g.held[g.place(i)] {
			if g.Now().Sub(h.at) < rules.LeaseFor {
				out[i]--
			}
		}
	}
	return out
}

// first returns the first subset with room, or of which room is held here; -1 if there is none.
func (g *giving) first() int { return g.Next(g.has(), rules.Open(g.counted)) }

// earlier returns the subsets that a Pod would go to rather than to the given one, -1 for none, if Pods of them were gone.
func (g *giving) earlier(subset int) []int { return g.Earlier(subset, g.has(), rules.Open(g.counted)) }

// setAside returns the entries of room before a subset that others may give back soon. By weights one subset is as good as another.
func (g *giving) setAside(subset int) []string {
	if g.Weights != nil && subset >= 0 {
		return nil
	}
	var out []string
	for _, i := range g.earlier(subset) {
		for _, entry := range rules.Leased(g.counted, g.Spread.Spec.Subsets[i].Name, g.Now()) {
			if !g.passedOver[entry] && !g.isOwn(entry) {
				out = append(out, entry)
			}
		}
	}
	return out
}

func (g *giving) place(subset int) rules.Place {
	return rules.Place{Version: g.Version, Subset: g.Spread.Spec.Subsets[subset].Name}
}

// pop returns an entry of what is held; empty if there is none that may still be given.
func (g *giving) pop(subset int) string {
	at := g.place(subset)
	for i, h := range g.held[at] {
		if g.Now().Sub(h.at) < rules.LeaseFor {
			g.held[at] = append(g.held[at][:i:i], g.held[at][i+1:]...)
			g.used, g.taken = g.Now(), h
			return h.entry
		}
	}
	return ""
}

// lease takes room for the Pod, for those that wait, and perhaps for some to come, by one write.
func (g *giving) lease(ctx context.Context, subset int) (string, error) {
	at, now := g.sizedBy(subset), g.Now()
	has, open := rules.Counts(g.counted, g.Version, g.Total), rules.Open(g.counted)
	room := g.RoomFor(subset, has, open)
	last := g.last[at]
	if room <= 0 { // what was held has just become too old to be given
		resource := schema.GroupResource{Resource: "workloadspreads"}
		return "", apierrors.NewConflict(resource, g.key.Name, errors.New("there is no room any more"))
	}
	size := rules.NextLease(room, 1+g.waiting.Load(), last.ahead, now.Sub(last.at))
	if g.ended.Load() {
		size = rules.Lease{Now: 1}
	}
	own := g.id()
	next := g.counted.DeepCopy()
	rules.Take(next, g.Limits, g.place(subset), map[string]metav1.Time{own: metav1.NewTime(now)})
	has[subset]++
	more := map[rules.Place][]held{}
	for range size.Now - 1 + size.Ahead {
		i := g.Next(has, open)
		if i < 0 {
			break
		}
		has[i]++
		more[g.place(i)] = append(more[g.place(i)], held{rules.LeaseEntry(g.id()), now})
	}
	for at, leased := range more {
		entries := map[string]metav1.Time{}
		for _, h := range leased {
			entries[h.entry] = metav1.NewTime(now)
		}
		rules.Take(next, g.Limits, at, entries)
	}
	// A write that was cut off may have come to the API server all the same.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := g.write(writing, g.stored, next); err != nil {
		return "", err
	}
	for at, leased := range more {
		g.held[at] = append(g.held[at], leased...)
	}
	g.last[at] = lease{size.Ahead, now}
	g.used, g.taken = now, held{own, now}
	return own, nil
}

// sizedBy returns the place whose last lease says how large the next one is. By weights a lease is of all subsets.
func (g *giving) sizedBy(subset int) rules.Place {
	if g.Weights != nil {
		return rules.Place{Version: g.Version}
	}
	return g.place(subset)
}

func (g *giving) write(ctx context.Context, stored, next *v1beta1.WorkloadSpread) error {
	if err := g.writeOver(ctx, stored, next); err != nil {
		return err
	}
	g.written, g.stored, g.counted = next, next, next
	return nil
}

// writeOver writes a status over the version that it was computed from.
func (l *Ledger) writeOver(ctx context.Context, stored, next *v1beta1.WorkloadSpread) error {
	err := l.Live.Status().Patch(ctx, next, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	l.Metrics.countWrite(err)
	if err != nil {
		return fmt.Errorf("writing the ledger of WorkloadSpread %s: %w", stored.Name, err)
	}
	return nil
}

func (l *Ledger) id() string { return l.Holder + "-" + strconv.FormatInt(l.count.Add(1), 36) }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// sameCount reports whether a Pod counts as it did.
func sameCount(before, after *corev1.Pod) bool {
	return maps.Equal(before.Labels, after.Labels) &&
		before.Annotations[keys.MatchedWorkloadSpread] == after.Annotations[keys.MatchedWorkloadSpread]
}
