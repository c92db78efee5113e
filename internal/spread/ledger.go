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
	// Spread is the WorkloadSpread as the cache has it, Limits what its subsets take, Total how many Pods the workload is to have.
	Spread  *v1beta1.WorkloadSpread
	Limits  []int32
	Total   int32
	Version string
}

// Room is what a Pod is given.
type Room struct {
	// Subset is the place of the subset; -1 if none has room.
	Subset int
	// Entry is the entry of the ledger that stands for the Pod until it is seen; empty if the subset has no limit.
	Entry string
}

// Give gives room to a Pod that is about to be stored.
func (l *Ledger) Give(ctx context.Context, r Request) (Room, error) {
	if i := firstOpen(r.Spread, r.Limits); i < 0 || r.Limits[i] == rules.Unlimited {
		return Room{Subset: i}, nil
	}
	m := l.memoryOf(r.Spread)
	m.waiting.Add(1)
	m.Lock()
	defer m.Unlock()
	m.waiting.Add(-1)
	g := &giving{Ledger: l, memory: m, Request: r}
	m.limits = r.Limits
	return g.run(ctx)
}

// firstOpen returns the first subset that takes Pods at all; -1 if none does.
func firstOpen(s *v1beta1.WorkloadSpread, limits []int32) int {
	for i := range limits {
		if limits[i] != 0 && rules.IsSchedulable(s, s.Spec.Subsets[i].Name) {
			return i
		}
	}
	return -1
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
}

func (g *giving) run(ctx context.Context) (Room, error) {
	if err := g.find(ctx); err != nil {
		return Room{Subset: -1}, err
	}
	backoff := wait.Backoff{Duration: g.Pause, Factor: 2, Jitter: 0.5, Steps: maxTries}
	for range maxTries {
		subset, err := g.choose(ctx)
		if err != nil || subset < 0 || g.Limits[subset] == rules.Unlimited {
			return Room{Subset: subset}, err
		}
		if entry := g.pop(subset); entry != "" {
			return Room{Subset: subset, Entry: entry}, nil
		}
		entry, err := g.lease(ctx, subset)
		switch {
		case apierrors.IsNotFound(err):
			return Room{Subset: -1}, nil // it is gone: the Pod is created as if it had never been there
		case !apierrors.IsConflict(err):
			return Room{Subset: subset, Entry: entry}, err
		}
		if err := pause(ctx, backoff.Step()); err != nil {
			return Room{Subset: -1}, err
		}
		if err := g.read(ctx); err != nil {
			return Room{Subset: -1}, client.IgnoreNotFound(err)
		}
	}
	return Room{Subset: -1}, fmt.Errorf("the ledger of WorkloadSpread %s was written by others each time: try again", g.key)
}

// choose returns the first subset with room; -1 if there is none. Where it would pass over a subset that is full, it counts Pods anew that
// may have gone, and waits a little for room that others have set aside.
func (g *giving) choose(ctx context.Context) (int, error) {
	subset := g.first()
	if !g.passesOver(subset) {
		return subset, nil
	}
	if err := g.recount(ctx); err != nil {
		return -1, err
	}
	if subset = g.first(); !g.passesOver(subset) {
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

// first returns the first subset with room, or of which room is held here; -1 if there is none.
func (g *giving) first() int {
	rooms := rules.Rooms(g.counted, g.Limits, g.Version, g.Total)
	for i := range rooms {
		if rooms[i] != 0 || g.holds(i) && rules.IsSchedulable(g.counted, g.Spread.Spec.Subsets[i].Name) {
			return i
		}
	}
	return -1
}

// passesOver reports whether a subset that takes Pods is before the given one, -1 for none: it must be full.
func (g *giving) passesOver(subset int) bool {
	i := firstOpen(g.counted, g.Limits)
	return i >= 0 && (subset < 0 || i < subset)
}

// setAside returns the entries of room before a subset that others may give back soon.
func (g *giving) setAside(subset int) []string {
	var out []string
	for i := range g.Limits {
		if i == subset {
			break
		}
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

func (g *giving) holds(subset int) bool {
	for _, h := range g.held[g.place(subset)] {
		if g.Now().Sub(h.at) < rules.LeaseFor {
			return true
		}
	}
	return false
}

// pop returns an entry of what is held; empty if there is none that may still be given.
func (g *giving) pop(subset int) string {
	at := g.place(subset)
	for i, h := range g.held[at] {
		if g.Now().Sub(h.at) < rules.LeaseFor {
			g.held[at] = append(g.held[at][:i:i], g.held[at][i+1:]...)
			g.used = g.Now()
			return h.entry
		}
	}
	return ""
}

// lease takes room for the Pod, for those that wait, and perhaps for some to come, by one write.
func (g *giving) lease(ctx context.Context, subset int) (string, error) {
	at, now := g.place(subset), g.Now()
	room := rules.Rooms(g.counted, g.Limits, g.Version, g.Total)[subset]
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
	entries := map[string]metav1.Time{own: metav1.NewTime(now)}
	var more []held
	for range size.Now - 1 + size.Ahead {
		h := held{rules.LeaseEntry(g.id()), now}
		more, entries[h.entry] = append(more, h), metav1.NewTime(now)
	}
	next := g.counted.DeepCopy()
	rules.Take(next, g.Limits, at, entries)
	if err := g.write(ctx, g.stored, next); err != nil {
		return "", err
	}
	g.held[at] = append(g.held[at], more...)
	g.last[at] = lease{size.Ahead, now}
	g.used = now
	return own, nil
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
