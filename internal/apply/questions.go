package apply

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

// A budget that refuses is asked again when it changes, or after a pause that doubles with each refusal.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// questions has writes ask their budgets in turn, and none while a budget has refused and not changed since: of a thousand Pods under a
// budget of ten, each would cost a request and a live read to hear the same.
//
// One question is asked at first, one more with each that was granted, and one again after a refusal. The zero questions are ready for use.
type questions struct {
	mu sync.Mutex
	of map[types.NamespacedName]*question
}

// question is what is asked of one budget.
type question struct {
	// asking is how many are asked now, and most how many may be. inLine are those who ask or wait for their turn to.
	asking, most, inLine int
	// changed means that the budget changed while it was asked: what it refuses may be outdated.
	changed bool
	pause   time.Duration
	until   time.Time
	// owners are those whose writes wait.
	owners map[types.NamespacedName]bool
	// answered is signalled with each answer.
	answered *sync.Cond
}

// begin waits for its turn to ask a budget. What it returns has to be called with the outcome, once at least, and notes in a refusal how
// long the budget is not asked again; nil if it has refused before and is not asked for so long.
func (q *questions) begin(budget, owner types.NamespacedName, now time.Time) (end func(err error, now time.Time), wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	one := q.of[budget]
	if one == nil {
		one = &question{most: 1, owners: map[types.NamespacedName]bool{}, answered: sync.NewCond(&q.mu)}
		if q.of == nil {
			q.of = map[types.NamespacedName]*question{}
		}
		q.of[budget] = one
	}
	one.owners[owner] = true
	one.inLine++
	for one.asking >= one.most && !one.until.After(now) {
		one.answered.Wait()
	}
	if wait = one.until.Sub(now); wait > 0 {
		one.inLine--
		return nil, wait
	}
	one.asking++
	var once sync.Once
	return func(err error, now time.Time) { once.Do(func() { q.end(budget, err, now) }) }, 0
}

func (q *questions) end(budget types.NamespacedName, err error, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	one := q.of[budget]
	one.asking--
	one.inLine--
	var refusal *Waiting
	switch refused := errors.As(err, &refusal); {
	case one.until.After(now): // somebody else has heard that it refuses
	case refused:
		one.pause = min(max(firstPause, 2*one.pause), maxPause)
		if one.changed {
			one.pause = firstPause
		}
		one.most, one.until = 1, now.Add(one.pause)
	default:
		one.most, one.pause = one.most+1, 0
	}
	if refusal != nil {
		refusal.For = one.until.Sub(now)
	}
	if one.asking == 0 {
		one.changed = false
	}
	if one.inLine == 0 && one.pause == 0 {
		delete(q.of, budget)
	}
	one.answered.Broadcast()
}

// BudgetChanged returns the owners whose writes wait for a budget that may allow more now; it is asked again from now on.
func (e *Executor) BudgetChanged(_ context.Context, before, after *v1beta1.PodUnavailableBudget) ([]types.NamespacedName, error) {
	if !mayAllowMore(before, after) {
		return nil, nil
	}
	return e.questions.change(client.ObjectKeyFromObject(cmp.Or(after, before))), nil
}

// change has a budget asked again, and returns the owners that wait for it.
func (q *questions) change(budget types.NamespacedName) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	one := q.of[budget]
	if one == nil {
		return nil
	}
	if one.inLine == 0 {
		delete(q.of, budget)
	}
	one.changed, one.pause, one.until = one.asking > 0, 0, time.Time{}
	return slices.SortedFunc(maps.Keys(one.owners), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// forget drops an owner that is gone, and the budgets that nobody else waits for.
func (q *questions) forget(owner types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for budget, one := range q.of {
		delete(one.owners, owner)
		if len(one.owners) == 0 && one.inLine == 0 {
			delete(q.of, budget)
		}
	}
}

// mayAllowMore reports whether a budget may allow after a change what it refused before.
func mayAllowMore(before, after *v1beta1.PodUnavailableBudget) bool {
	if before == nil || after == nil || after.Status.UnavailableAllowed > 0 || before.Generation != after.Generation {
		return true
	}
	was, is := &before.Status, &after.Status
	return was.ObservedGeneration != is.ObservedGeneration || was.TotalReplicas != is.TotalReplicas ||
		was.DesiredAvailable != is.DesiredAvailable ||
		meta.IsStatusConditionTrue(was.Conditions, v1beta1.ConditionSurplusPods) != meta.IsStatusConditionTrue(is.Conditions,
			v1beta1.ConditionSurplusPods)
}
