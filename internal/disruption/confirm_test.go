package disruption

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

// TestAScaleInCountsOnceASecond: Pods that nobody wants any more are deleted by the hundred, and a count reads them all.
func TestAScaleInCountsOnceASecond(t *testing.T) {
	for name, numbers := range map[string]rules.Numbers{
		"to none":                                {Counts: rules.Counts{Current: 20, Allowed: 20}},
		"to fewer":                               {Counts: rules.Counts{Total: 5, Desired: 5, Current: 20, Allowed: 15}},
		"to fewer, with minAvailable above them": {Counts: rules.Counts{Total: 5, Desired: 20, Current: 20}, Surplus: true},
		"its workload is gone, with minAvailable": {Counts: rules.Counts{Desired: 20, Current: 20}, Surplus: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSetup(budget(0))
			c.numbers = numbers
			for n := range 20 {
				c.now = c.now.Add(40 * time.Millisecond)
				decision, err := c.Evaluate(t.Context(), Request{Pod: guarded(n), Operation: v1beta1.PubDeleteOperation})
				if want := n < int(20-numbers.Total); decision.Allowed() != want || err != nil {
					t.Errorf("Pod %d: %+v, %v", n, decision, err)
				}
			}
			if c.liveCounts != 1 {
				t.Errorf("%d live counts", c.liveCounts)
			}
		})
	}
}

// TestThatNoPodsAreNeededIsAskedForEachTime: nothing records what is done to Pods that nobody needs, so an answer of a moment ago, from before
// more were needed, would let too many go.
func TestThatNoPodsAreNeededIsAskedForEachTime(t *testing.T) {
	none, few := rules.Numbers{Counts: rules.Counts{Current: 20, Allowed: 20}}, rules.Numbers{Counts: rules.Counts{Total: 20, Desired: 20, Current: 20}}
	for name, tc := range map[string]struct {
		before, after func(*setup)
	}{
		"the cache has not seen that more are needed": {
			before: func(c *setup) { c.versions[0].Status.DesiredAvailable = 0 },
			after: func(c *setup) {
				c.put(budget(0))
				c.numbers, c.cache.behind = few, func() int { return 1 }
			},
		},
		"the cache has not seen another spec": {
			before: func(c *setup) { c.versions[0].Status.DesiredAvailable = 0 },
			after: func(c *setup) {
				changed := budget(0)
				changed.Generation, changed.Status.DesiredAvailable = 2, 0
				c.put(changed)
				c.numbers, c.cache.behind = few, func() int { return 1 }
			},
		},
		"a workload is scaled out before the controller has seen that it was scaled in": {
			before: func(c *setup) { c.numbers = none },
			after:  func(c *setup) { c.numbers = few },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSetup(budget(0))
			tc.before(c)
			evaluate := func(n int) bool {
				c.now = c.now.Add(time.Millisecond)
				decision, err := c.Evaluate(t.Context(), Request{Pod: guarded(n), Operation: v1beta1.PubDeleteOperation})
				return err == nil && decision.Allowed()
			}
			first := evaluate(0)
			tc.after(c)
			if second := evaluate(1); !first || second {
				t.Errorf("allowed while none are needed: %t, once all are: %t", first, second)
			}
		})
	}
}

// TestWhoWaitedNeedNotAsk: one answer is enough for all who came before the question.
func TestWhoWaitedNeedNotAsk(t *testing.T) {
	c := newSetup(budget(0))
	c.versions[0].Status.DesiredAvailable = 0
	const requests = 20
	var came atomic.Int32
	all := make(chan struct{})
	c.Evaluator.Now = func() time.Time {
		now := time.Now()
		if came.Add(1) == requests {
			close(all)
		}
		return now
	}
	c.cache.behind = func() int {
		select {
		case <-all:
		case <-time.After(5 * time.Second):
		}
		return 0
	}
	var asking sync.WaitGroup
	for n := range requests {
		asking.Go(func() {
			if decision, err := c.Evaluate(t.Context(), Request{Pod: guarded(n), Operation: v1beta1.PubDeleteOperation}); err != nil || !decision.Allowed() {
				t.Errorf("Pod %d: %+v, %v", n, decision, err)
			}
		})
	}
	asking.Wait()
	if c.reads != 1 {
		t.Errorf("%d reads for %d requests that came together", c.reads, requests)
	}
}

// TestNothingIsKeptOfABudgetThatIsGone, unless another one has taken its name.
func TestNothingIsKeptOfABudgetThatIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		gone types.UID
		kept int
	}{
		"the budget is gone":                             {"first", 0},
		"the one before is, and this one has taken over": {"earlier", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget(1)
			b.UID = "first"
			c := newSetup(b)
			decision, err := c.Evaluate(t.Context(), Request{Pod: guarded(1), Operation: v1beta1.PubDeleteOperation})
			if !decision.Allowed() || err != nil {
				t.Fatalf("%+v, %v", decision, err)
			}
			gone := b.DeepCopy()
			c.NoteBudget(b, gone)
			gone.UID = tc.gone
			c.NoteBudget(gone, nil)
			kept := 0
			c.budgets.Range(func(any, any) bool { kept++; return true })
			if kept != tc.kept {
				t.Errorf("%d budgets are remembered, want %d", kept, tc.kept)
			}
		})
	}
}
