package apply

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// busyServer answers each request after a time, and works at so many at once; the others wait.
type busyServer struct {
	slots chan struct{}
	// takes is how long one request takes, in nanoseconds.
	takes atomic.Int64
	// underWay and most count the requests of the tested client.
	underWay, most atomic.Int64
}

func newBusyServer(takes time.Duration, atOnce int) *busyServer {
	s := &busyServer{slots: make(chan struct{}, atOnce)}
	s.takes.Store(int64(takes))
	return s
}

func (s *busyServer) work() {
	s.slots <- struct{}{}
	time.Sleep(time.Duration(s.takes.Load()))
	<-s.slots
}

func (s *busyServer) write() {
	now := s.underWay.Add(1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	s.work()
	s.underWay.Add(-1)
}

// writeAll has a number of writers write through a limit, and returns how long all writes took together.
func writeAll(t *testing.T, l *Limit, s *busyServer, writers, each int) time.Duration {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				leave, err := l.enter(t.Context(), "owner", plan.Create)
				if err != nil {
					t.Error(err)
					return
				}
				s.write()
				leave(nil)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

func TestLimitKeepsWritesBackFromABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newBusyServer(5*time.Millisecond, 2)
		l := NewLimit(time.Now)
		writeAll(t, l, server, 1, 20) // at rest
		writeAll(t, l, server, 128, 20)
		server.most.Store(0)
		// Another one asks meanwhile, and waits behind at most as many as are under way.
		var worst time.Duration
		done := make(chan struct{})
		var other sync.WaitGroup
		other.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
				}
				began := time.Now()
				server.work()
				worst = max(worst, time.Since(began))
			}
		})
		took := writeAll(t, l, server, 128, 100)
		close(done)
		other.Wait()
		if most := server.most.Load(); most > 24 {
			t.Errorf("%d writes were under way at a server that works at 2", most)
		}
		if worst > 70*time.Millisecond {
			t.Errorf("another one waited %s for what takes 5 ms, where 128 writes under way would have it wait 320", worst)
		}
		// The server is never idle: it works at 2 all the time, at some of them for the other one.
		if fastest := 128 * 100 / 2 * 5 * time.Millisecond; took > fastest*115/100 {
			t.Errorf("the writes took %s, and %s at best", took, fastest)
		}
	})
}

// TestLimitSharesAmongOwners: a small owner does not wait behind all that a large one has to write.
func TestLimitSharesAmongOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(time.Now)
		var large, small sync.WaitGroup
		write := func(owner types.UID) {
			leave, err := l.enter(t.Context(), owner, plan.Create)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(100 * time.Millisecond)
			leave(nil)
		}
		for range 1000 {
			large.Go(func() { write("large") })
		}
		synctest.Wait()
		began := time.Now()
		for range 3 {
			small.Go(func() { write("small") })
		}
		small.Wait()
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("three writes of 100 ms took %v behind 1,000 of another owner", took)
		}
		large.Wait()
		if len(l.ofOwner) > 0 || l.underWay != 0 {
			t.Errorf("at rest, %d writes are under way, by owner %v", l.underWay, l.ofOwner)
		}
	})
}

func TestLimitUsesAServerWithRoomToSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newBusyServer(20*time.Millisecond, 10_000)
		l := NewLimit(time.Now)
		writeAll(t, l, server, 1000, 100)
		if most := server.most.Load(); most != mostUnderWay {
			t.Errorf("%d writes were under way at most, want %d", most, mostUnderWay)
		}
	})
}

func TestLimitGetsUsedToAServerThatHasBecomeSlower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newBusyServer(2*time.Millisecond, 10_000)
		l := NewLimit(time.Now)
		writeAll(t, l, server, 1, 50)
		server.takes.Store(int64(40 * time.Millisecond))
		writeAll(t, l, server, 64, 2)
		if l.limit > firstUnderWay/2 {
			t.Errorf("the limit is %.0f after writes that took twenty times as long", l.limit)
		}
		time.Sleep(restAfter)
		writeAll(t, l, server, 1, 100) // in quiet times
		writeAll(t, l, server, 64, 30)
		if l.limit < firstUnderWay {
			t.Errorf("the limit is still %.0f after 2,000 writes that took as long as those in quiet times", l.limit)
		}
	})
}

// A long rollout must not take the load that it is itself for rest, when few of its writes are under way for a moment.
func TestLimitDoesNotGetUsedToItsOwnLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newBusyServer(5*time.Millisecond, 2)
		l := NewLimit(time.Now)
		writeAll(t, l, server, 1, 50) // at rest
		done := make(chan struct{})
		var others sync.WaitGroup
		for range 30 { // what the writes bring about
			others.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						server.work()
					}
				}
			})
		}
		for range 100 { // passes
			writeAll(t, l, server, 1, 4)
			writeAll(t, l, server, 128, 1)
		}
		close(done)
		others.Wait()
		if l.limit != leastUnderWay {
			t.Errorf("the limit is %.0f at a busy server after 100 passes, want %d", l.limit, leastUnderWay)
		}
	})
}

// Several deletions take the room of one other write.
func TestLimitOfDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(time.Now)
		var entered atomic.Int64
		const deletions = firstUnderWay / 2 * deletionsPerWrite
		for _, verb := range []plan.Verb{plan.Delete, plan.Update} {
			for range deletions {
				go func() {
					leave, err := l.enter(t.Context(), types.UID(verb), verb)
					if err != nil {
						return
					}
					entered.Add(1)
					time.Sleep(time.Minute)
					leave(nil)
				}()
			}
			synctest.Wait()
		}
		// All deletions, which take half of the room, and as many updates as fit beside.
		if want := int64(deletions + firstUnderWay/2); entered.Load() != want {
			t.Errorf("%d writes are under way, want %d", entered.Load(), want)
		}
		if got, want := l.atMost(1000, plan.Delete), deletionsPerWrite*firstUnderWay; got != want {
			t.Errorf("at most %d deletions are under way, want %d", got, want)
		}
		time.Sleep(time.Hour)
		if len(l.ofOwner) > 0 || l.underWay != 0 {
			t.Errorf("at rest, %d writes are under way, by owner %v", l.underWay, l.ofOwner)
		}
	})
}

func TestWhatAWriteTakesAtRest(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds float64
		resting bool
		atRest  float64
	}{
		"a faster one proves what is possible":           {0.36, true, 0.92},
		"a faster one proves it also while busy":         {0.36, false, 0.92},
		"a slower one may have met the load of others":   {2.28, true, 1.01},
		"a much slower one says little":                  {1000, true, 1 + (mostSlow-1)/128},
		"a slower one while busy has met our own writes": {2.28, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLimit(time.Now)
			l.slow(plan.Update, 1, false)
			if slow := l.slow(plan.Update, tc.seconds, tc.resting); math.Abs(slow-tc.seconds/tc.atRest) > 1e-9 {
				t.Errorf("it took %v times as long as at rest, want %v", slow, tc.seconds/tc.atRest)
			}
		})
	}
}

func TestLimitFallsAndRisesWithRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(time.Now)
		write := func(err error) {
			leave, enterErr := l.enter(t.Context(), "owner", plan.Update)
			if enterErr != nil {
				t.Fatal(enterErr)
			}
			time.Sleep(time.Millisecond)
			leave(err)
		}
		for range 3 * firstUnderWay {
			write(apierrors.NewTooManyRequests("later", 1))
		}
		if l.limit != leastUnderWay {
			t.Errorf("the limit is %.0f after refusals, want %d", l.limit, leastUnderWay)
		}
		for range 100 {
			write(errors.New("not allowed"))
		}
		if l.limit != leastUnderWay || l.looked != 0 {
			t.Errorf("failures that say nothing of the load changed the limit to %.0f", l.limit)
		}
		server := newBusyServer(time.Millisecond, 100)
		writeAll(t, l, server, 64, 100)
		if l.limit <= firstUnderWay {
			t.Errorf("the limit is %.0f long after refusals", l.limit)
		}
	})
}

// A limit that nobody meets says nothing of the server: it must not rise meanwhile.
func TestLimitDoesNotRiseUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(time.Now)
		writeAll(t, l, newBusyServer(time.Millisecond, 100), 2, 1000)
		if l.limit != firstUnderWay {
			t.Errorf("the limit is %.0f, want %d", l.limit, firstUnderWay)
		}
	})
}

func TestLimitForgetsWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(time.Now)
		var leaves []func(error)
		for range firstUnderWay {
			leave, err := l.enter(t.Context(), "owner", plan.Create)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.enter(ctx, "owner", plan.Create); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("entering at the limit: %v, want that of the context", err)
		}
		last := make(chan func(error))
		go func() {
			leave, err := l.enter(t.Context(), "owner", plan.Create)
			if err != nil {
				t.Error(err)
			}
			last <- leave
		}()
		synctest.Wait()
		leaves[0](nil)
		(<-last)(nil)
		for _, leave := range leaves[1:] {
			leave(nil)
		}
		if l.underWay != 0 || len(l.waiting) != 0 {
			t.Errorf("%d writes are under way and %d wait after all have ended", l.underWay, len(l.waiting))
		}
	})
}

func TestLimitAdmitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(time.Now)
		l.limit = 1
		first, err := l.enter(t.Context(), "owner", plan.Create)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				leave, err := l.enter(t.Context(), "owner", plan.Create)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // one at a time: the limit is 1
				leave(errors.New("says nothing"))
			})
			synctest.Wait()
		}
		first(errors.New("says nothing"))
		all.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("writes began in the order %v", order)
			}
		}
	})
}

func TestNoLimitBoundsNothing(t *testing.T) {
	var l *Limit
	for range math.MaxInt8 {
		if _, err := l.enter(t.Context(), "owner", plan.Delete); err != nil {
			t.Fatal(err)
		}
	}
}
