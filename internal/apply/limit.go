package apply

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

const (
	// fewUnderWay are so few writes under way that, once there have been no more for restAfter, how long one takes is how long it takes at
	// rest. Before that, the API server may still be busy with what those before have brought about, such as the reports of kubelets.
	fewUnderWay = 4
	restAfter   = 5 * time.Second
	// leastUnderWay is the lowest limit: enough to hide the latency of an API server that is only far away.
	leastUnderWay = 16
	firstUnderWay = 32
	mostUnderWay  = 512
	// fullAt is how many times as long as at rest a write takes when the API server has no room to spare: more writes under way would
	// only wait there, and keep those of others waiting. farTooMany is when it is time to go down fast. Lower ones were tried on two
	// processors that the API server shares with all its clients: removing 1,000 Pods then took more than twice as long.
	fullAt     = 8.0
	farTooMany = 16.0
	// mostSlow bounds what one slow write says, as it may have waited for anything.
	mostSlow = 32.0
	// deletionsPerWrite is how many deletions count as one other write: so many times as many may be under way, each for so many times as
	// long. They have no fields to merge, and with as few of them as of others, removing 1,000 Pods takes twice as long.
	deletionsPerWrite = 3
)

// Limit is an adaptive limit of concurrency: it bounds the writes under way of all Executors that share it. A write that finds the limit
// reached waits here, instead of at the API server, where it would keep the writes of others waiting. The next one to begin is of the owner
// with the fewest writes under way, and of those the one that came first: so a Pod of a small workload does not wait until all those of a
// large one are written.
//
// The limit follows how long writes take, each compared with one of its verb at rest. It rises while the API server answers about as fast
// as at rest, and falls when writes take a multiple of that, or when the server refuses them as too many. So a server with room to spare
// is used as far as it goes, and a busy one, whoever keeps it busy, gets fewer writes at a time. A nil Limit bounds nothing.
type Limit struct {
	now func() time.Time

	mu    sync.Mutex
	limit float64
	// underWay is how many deletions the writes under way count as.
	underWay int
	waiting  []waiter
	// ofOwner is that of each owner that has any under way.
	ofOwner map[types.UID]int
	// atRest is how many seconds a write of each verb takes at rest.
	atRest map[plan.Verb]float64
	// lastBusy is when more than a few were last under way.
	lastBusy time.Time
	// slowness adds up how many times as long as at rest the last writes took, of which there are looked; reached is whether they met
	// the limit.
	slowness float64
	looked   int
	reached  bool
}

// waiter is a write that waits for its turn.
type waiter struct {
	owner types.UID
	cost  int
	turn  chan struct{}
}

// costOf returns how many deletions a write counts as.
func costOf(verb plan.Verb) int {
	if verb == plan.Delete {
		return 1
	}
	return deletionsPerWrite
}

// NewLimit returns a limit that has seen no write yet.
func NewLimit(now func() time.Time) *Limit {
	writeLimit.Set(firstUnderWay)
	return &Limit{now: now, limit: firstUnderWay, ofOwner: map[types.UID]int{}, atRest: map[plan.Verb]float64{}}
}

// atMost returns how many writes of a verb may be under way, or the number if that is lower: more of one pass would only wait here, and
// have it last longer.
func (l *Limit) atMost(number int, verb plan.Verb) int {
	if l == nil {
		return number
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(number, l.room()/costOf(verb))
}

// enter waits until one more write may be under way for an owner, and returns what is to be called with its error when it has ended. The
// error of enter is that of the context.
func (l *Limit) enter(ctx context.Context, owner types.UID, verb plan.Verb) (leave func(error), err error) {
	if l == nil {
		return func(error) {}, nil
	}
	if err := l.admitted(ctx, owner, costOf(verb)); err != nil {
		return nil, err
	}
	l.mu.Lock()
	began := l.now()
	if l.underWay > fewUnderWay*deletionsPerWrite {
		l.lastBusy = began
	}
	resting := began.Sub(l.lastBusy) >= restAfter
	l.mu.Unlock()
	return func(err error) {
		took := l.now().Sub(began)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended(owner, costOf(verb))
		l.learn(verb, took.Seconds(), resting, err)
		l.admit()
	}, nil
}

// ended counts a write as under way no more.
func (l *Limit) ended(owner types.UID, cost int) {
	l.underWay -= cost
	l.ofOwner[owner] -= cost
	if l.ofOwner[owner] == 0 {
		delete(l.ofOwner, owner)
	}
}

// admitted waits for the turn of a write, and counts it as under way from then on.
func (l *Limit) admitted(ctx context.Context, owner types.UID, cost int) error {
	turn := make(chan struct{})
	l.mu.Lock()
	l.waiting = append(l.waiting, waiter{owner, cost, turn})
	l.admit()
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.waiting, waiter{owner, cost, turn}); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	} else { // its turn has come as it gave up
		l.ended(owner, cost)
		l.admit()
	}
	return ctx.Err()
}

// admit lets as many writes begin as the limit allows.
func (l *Limit) admit() {
	for len(l.waiting) > 0 && l.hasRoom() {
		next := 0
		for at, w := range l.waiting {
			if l.ofOwner[w.owner] < l.ofOwner[l.waiting[next].owner] {
				next = at
			}
		}
		l.underWay += l.waiting[next].cost
		l.ofOwner[l.waiting[next].owner] += l.waiting[next].cost
		close(l.waiting[next].turn)
		l.waiting = slices.Delete(l.waiting, next, next+1)
	}
	l.reached = l.reached || !l.hasRoom()
}

func (l *Limit) hasRoom() bool { return l.underWay < l.room() }

// room returns how many deletions may be under way.
func (l *Limit) room() int { return int(l.limit) * deletionsPerWrite }

// learn takes one write into account that has ended. Those that failed say nothing of how busy the API server is, but for refusals of too
// many, and for conflicts, which took as long as any other.
func (l *Limit) learn(verb plan.Verb, seconds float64, resting bool, err error) {
	switch {
	case apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err):
		l.slowness += mostSlow
	case err != nil && !apierrors.IsConflict(err):
		return
	default:
		l.slowness += min(l.slow(verb, seconds, resting)*float64(costOf(verb))/deletionsPerWrite, mostSlow)
	}
	l.looked++
	if l.looked < max(leastUnderWay, int(l.limit)) {
		return
	}
	switch slowness := l.slowness / float64(l.looked); {
	case slowness > farTooMany:
		l.limit = max(leastUnderWay, l.limit/2)
	case slowness > fullAt:
		l.limit = max(leastUnderWay, l.limit*0.8)
	case l.reached:
		l.limit = min(mostUnderWay, l.limit+max(1, l.limit/8))
	}
	l.slowness, l.looked, l.reached = 0, 0, false
	writeLimit.Set(float64(int(l.limit)))
}

// slow returns how many times as long as at rest a write took, and learns from it what that is. What a write takes at rest falls fast: one
// that is faster than known proves what is possible. It rises slowly, as one that is slower may have met the load of others, and only at
// rest: a long rollout would else have the limit rise by the load that it is itself. A server that has become slower for good is known as
// such after some dozen writes in quiet times.
func (l *Limit) slow(verb plan.Verb, seconds float64, resting bool) float64 {
	atRest, known := l.atRest[verb]
	switch {
	case !known:
		atRest = seconds
	case seconds < atRest:
		atRest += (seconds - atRest) / 8
	case resting:
		atRest += (min(seconds, mostSlow*atRest) - atRest) / 128
	}
	l.atRest[verb] = atRest
	if atRest <= 0 {
		return 1
	}
	return seconds / atRest
}
