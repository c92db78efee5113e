package pull

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// patience is how long a namespace without a slot waits before one that has several gives one back.
const patience = 30 * time.Second

// errYield is the cause of the end of a pull whose slot another namespace gets. It costs the round no attempt.
var errYield = errors.New("ended for images of other namespaces, which had to wait")

// turns grant the slots of pulls, which limit how many run at the same time. A slot that becomes free goes to the namespace that has the
// fewest, among those to the one that got its last slot the longest ago, and within a namespace to who has asked first. So the jobs of
// one namespace, however many they are and however long they take, delay those of others by little.
type turns struct {
	mu      sync.Mutex
	free    int
	held    []*turn // in the order in which they were granted
	waiting []*turn // in the order in which they were requested
	served  map[string]int
	grants  int
}

// turn is a slot that is requested or granted. All fields but the channels are guarded by the lock of turns.
type turn struct {
	namespace string
	// granted is closed when the slot is granted, yield when it should be given back for another namespace.
	granted, yield chan struct{}
	yields         bool
}

// newTurns returns turns with so many slots; less than 1 is no limit.
func newTurns(slots int) *turns {
	if slots < 1 {
		slots = math.MaxInt
	}
	return &turns{free: slots, served: map[string]int{}}
}

// request asks for a slot, and reports whether it was granted at once. Every request must be followed by a release.
func (t *turns) request(namespace string) (asked *turn, granted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked = &turn{namespace: namespace, granted: make(chan struct{}), yield: make(chan struct{})}
	t.waiting = append(t.waiting, asked)
	t.grant()
	return asked, slices.Contains(t.held, asked)
}

// release gives a slot back, or takes a request back.
func (t *turns) release(of *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	isIt := func(other *turn) bool { return other == of }
	t.waiting = slices.DeleteFunc(t.waiting, isIt)
	if slices.Contains(t.held, of) {
		t.held = slices.DeleteFunc(t.held, isIt)
		t.free++
	}
	t.grant()
}

// grant grants slots while there are any. The caller holds the lock.
func (t *turns) grant() {
	for t.free > 0 && len(t.waiting) > 0 {
		next := slices.MinFunc(t.waiting, func(a, b *turn) int { // the first of those that are equal
			return cmp.Or(
				cmp.Compare(t.slotsOf(a.namespace), t.slotsOf(b.namespace)), cmp.Compare(t.served[a.namespace], t.served[b.namespace]),
			)
		})
		t.waiting = slices.DeleteFunc(t.waiting, func(other *turn) bool { return other == next })
		t.held = append(t.held, next)
		t.free--
		t.grants++
		t.served[next.namespace] = t.grants
		close(next.granted)
	}
	if len(t.held)+len(t.waiting) == 0 {
		t.served, t.grants = map[string]int{}, 0 // namespaces may be gone for good
	}
}

func (t *turns) slotsOf(namespace string) (slots int) {
	for _, h := range t.held {
		if h.namespace == namespace && !h.yields {
			slots++
		}
	}
	return slots
}

// wait returns when the slot is granted, and reports whether it was before the context has ended.
func (t *turns) wait(ctx context.Context, of *turn) bool {
	for {
		select {
		case <-of.granted:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(patience):
			t.demand(of)
		}
	}
}

// demand has the namespace with the most slots give back the one that it got last, if the one that waits has none.
func (t *turns) demand(of *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slotsOf(of.namespace) > 0 || !slices.Contains(t.waiting, of) {
		return
	}
	var last *turn
	for _, h := range t.held {
		if h.yields {
			return // a slot is on its way back
		}
		if t.slotsOf(h.namespace) > 1 && (last == nil || t.slotsOf(h.namespace) >= t.slotsOf(last.namespace)) {
			last = h
		}
	}
	if last != nil {
		last.yields = true
		close(last.yield)
	}
}
