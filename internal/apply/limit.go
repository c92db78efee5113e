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
	// fewUnderWay are so few writes under way that how long one takes is how long it takes at rest.
	fewUnderWay = 4
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

	mu       sync.Mutex
	limit    float64
	underWay int
	waiting  []waiter
	// ofOwner is how many writes are under way for each owner that has any.
	ofOwner map[types.UID]int
	// atRest is how many seconds a write of each verb takes while few are under way.
	atRest map[plan.Verb]float64
	// slowness adds up how many times as long as at rest the last writes took, of which there are looked; reached is whether they met
	// the limit.
	slowness float64
	looked   int
	reached  bool
}

// waiter is a write that waits for its turn.
type waiter struct {
	owner types.UID
	turn  chan struct{}
}

// NewLimit returns a limit that has seen no write yet.
func NewLimit(now func() time.Time) *Limit {
	writeLimit.Set(firstUnderWay)
	return &Limit{now: now, limit: firstUnderWay, ofOwner: map[types.UID]int{}, atRest: map[plan.Verb]float64{}}
}

// atMost returns the limit, or the number if that is lower: more writes of one pass would only wait here, and have it last longer.
func (l *Limit) atMost(number int) int {
	if l == nil {
		return number
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(number, int(l.limit))
}

// enter waits until one more write may be under way for an owner, and returns what is to be called with its error when it has ended. The
// error of enter is that of the context.
func (l *Limit) enter(ctx context.Context, owner types.UID, verb plan.Verb) (leave func(error), err error) {
	if l == nil {
		return func(error) {}, nil
	}
	if err := l.admitted(ctx, owner); err != nil {
		return nil, err
	}
	l.mu.Lock()
	few := l.underWay <= fewUnderWay
	l.mu.Unlock()
	began := l.now()
	return func(err error) {
		took := l.now().Sub(began)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended(owner)
		l.learn(verb, took.Seconds(), few, err)
		l.admit()
	}, nil
}

// ended counts a write as under way no more.
func (l *Limit) ended(owner types.UID) {
	l.underWay--
	l.ofOwner[owner]--
	if l.ofOwner[owner] == 0 {
		delete(l.ofOwner, owner)
	}
}

// admitted waits for the turn of a write, and counts it as under way from then on.
func (l *Limit) admitted(ctx context.Context, owner types.UID) error {
	turn := make(chan struct{})
	l.mu.Lock()
	l.waiting = append(l.waiting, waiter{owner, turn})
	l.admit()
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.waiting, waiter{owner, turn}); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	} else { // its turn has come as it gave up
		l.ended(owner)
		l.admit()
	}
	return ctx.Err()
}

// admit lets as many writes begin as the limit allows.
func (l *Limit) admit() {
	for len(l.waiting) > 0 && l.underWay < int(l.limit) {
		next := 0
		for at, w := range l.waiting {
			if l.ofOwner[w.owner] < l.ofOwner[l.waiting[next].owner] {
				next = at
			}
		}
		l.underWay++
		l.ofOwner[l.waiting[next].owner]++
		close(l.waiting[next].turn)
		l.waiting = slices.Delete(l.waiting, next, next+1)
	}
	l.reached = l.reached || l.underWay >= int(l.limit)
}

// learn takes one write into account that has ended. Those that failed say nothing of how busy the API server is, but for refusals of too
// many, and for conflicts, which took as long as any other.
func (l *Limit) learn(verb plan.Verb, seconds float64, few bool, err error) {
	switch {
	case apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err):
		l.slowness += mostSlow
	case err != nil && !apierrors.IsConflict(err):
		return
	default:
		l.slowness += min(l.slow(verb, seconds, few), mostSlow)
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

// slow returns how many times as long as at rest a write took, and learns from one that began while few were under way. What a write takes
// at rest falls fast and rises slowly: one that is faster than known proves what is possible, one that is slower may have met the load of
// others. A server that has become slower for good is known as such after some dozen writes in quiet times.
func (l *Limit) slow(verb plan.Verb, seconds float64, few bool) float64 {
	atRest, known := l.atRest[verb]
	switch {
	case !known:
		atRest = seconds
	case !few:
	case seconds < atRest:
		atRest += (seconds - atRest) / 8
	default:
		atRest += (min(seconds, mostSlow*atRest) - atRest) / 128
	}
	l.atRest[verb] = atRest
	if atRest <= 0 {
		return 1
	}
	return seconds / atRest
}
