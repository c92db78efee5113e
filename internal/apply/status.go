package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// The status of one owner is written at most once a second in the long run; a short rollout may show each of its steps.
const (
	statusInterval = time.Second
	statusBurst    = 20
	// minorInterval is how long after a status another one is written that says little more.
	minorInterval = 10 * time.Second
)

// StatusPolicy says when the status T of owners O is written.
type StatusPolicy[O plan.Object, T any] struct {
	// Of returns where an owner has its status.
	Of func(O) *T
	// Exact writes a status only over the version of the owner that it was computed from. That is for a status that decides what is done
	// next, such as that a job is over: a write that arrives late must not take it back.
	Exact bool
	// Final, if there is one, reports whether an owner's status says that it has reached its goal. People and tools wait for just that, so
	// such a status is not delayed. As those before are, there can be no more of it than of them.
	Final func(O) bool
	// Minor, if there is one, reports whether a status differs from the stored one in what can wait, such as counts: it is then written no
	// sooner than ten seconds after the last one.
	Minor func(stored, next *T) bool
	// Begins, if there is one, reports whether a status says no more than that what a newer spec asks for has begun. Mostly it is over
	// before anybody has read that, so it is written ten seconds after it was first so, unless something else comes to be said before;
	// until then the observed generation tells that the status is of an earlier spec.
	Begins func(stored, next *T) bool
	// PerSecond, if not 0, is for owners of which many may change at once. While they change faster, no more than that are written, each
	// with what is true by then. Not delayed are statuses that speak of a newer spec, nor the first final one of each spec: later final
	// ones are, as each new Pod may make an owner unfinished and finished again.
	PerSecond int
}

// Statuses writes the status of owners, no more often than anybody can read it.
type Statuses[O plan.Object, T any] struct {
	StatusPolicy[O, T]
	executor *Executor
	// turns, if there are any, keep the owners' statuses together within PerSecond.
	turns *turns
}

// statusMemory is what is remembered of the status of one owner.
type statusMemory struct {
	limiter *rate.Limiter
	turn    turn
	// final is the generation of the last final status that did not wait for its turn; isFinal that there was one.
	final   int64
	isFinal bool
	// written is when the last status was written; of statuses with minor changes only.
	written time.Time
	// begun is since when the status that is not written yet says that something has begun.
	begun time.Time
}

// NewStatuses returns Statuses that write through the executor.
func NewStatuses[O plan.Object, T any](e *Executor, policy StatusPolicy[O, T]) *Statuses[O, T] {
	s := &Statuses[O, T]{StatusPolicy: policy, executor: e}
	if policy.PerSecond > 0 {
		s.turns = newTurns(policy.PerSecond)
	}
	return s
}

// Write stores the status of an owner, if it differs from the one that it has. When it is too early for that, it returns how long to wait
// instead; a status that speaks of a newer spec is never too early, nor is a final one.
func (s *Statuses[O, T]) Write(ctx context.Context, owner O, status T) (wait time.Duration, err error) {
	content, urgent, err := statusChange(*s.Of(owner), status)
	if err != nil {
		return 0, fmt.Errorf("encoding the status of %s: %w", owner.GetName(), err)
	}
	if content == nil {
		s.executor.owners.Peek(owner.GetUID(), func(m *memory) { m.status.turn = turn{} })
		return 0, nil
	}
	after := owner.DeepCopyObject().(O)
	*s.Of(after) = status
	if wait := s.waitBegun(owner, status); wait > 0 {
		return wait, nil
	}
	if wait := s.waitMinor(owner, status); wait > 0 && !urgent {
		return wait, nil
	}
	if wait := s.wait(after, string(content), urgent); wait > 0 {
		return wait, nil
	}
	// The UID is tested, which the API server ignores in any other patch of a custom resource's status.
	patch := []operation{{"test", "/metadata/uid", owner.GetUID()}, {"add", "/status", content}}
	if s.Exact {
		patch = append(patch, operation{"replace", "/metadata/resourceVersion", owner.GetResourceVersion()})
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return 0, fmt.Errorf("encoding the status of %s: %w", owner.GetName(), err)
	}
	object := named(owner)
	err = s.executor.Writer.Patch(ctx, object, "status", types.JSONPatchType, encoded)
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case apierrors.IsConflict(err):
		// Of a patch that goes for any version the API server has only lost a race with other writers too often, and no event may follow.
		return statusInterval, nil
	case apierrors.IsInvalid(err) && s.isReplaced(ctx, owner):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("writing the status of %s: %w", owner.GetName(), err)
	}
	return 0, s.executor.wrote(owner, object)
}

// IsMinor reports whether a status differs from that of the owner only in what can wait.
func (s *Statuses[O, T]) IsMinor(owner O, status T) bool {
	return s.Minor != nil && s.Minor(s.Of(owner), &status)
}

// waitMinor returns how long a minor change of a status has to wait, and takes it for written if it need not.
func (s *Statuses[O, T]) waitMinor(owner O, status T) (wait time.Duration) {
	if s.Minor == nil {
		return 0
	}
	now, minor := s.executor.Now(), s.IsMinor(owner, status)
	s.executor.owners.Do(owner.GetUID(), func(m *memory) {
		if own := &m.status; minor && !own.written.IsZero() {
			wait = max(own.written.Add(minorInterval).Sub(now), 0)
		}
		if wait == 0 {
			m.status.written = now
		}
	})
	return wait
}

// waitBegun returns how long a status has to wait that only says that something has begun.
func (s *Statuses[O, T]) waitBegun(owner O, status T) (wait time.Duration) {
	if s.Begins == nil {
		return 0
	}
	now, begins := s.executor.Now(), s.Begins(s.Of(owner), &status)
	s.executor.owners.Do(owner.GetUID(), func(m *memory) {
		switch own := &m.status; {
		case !begins:
			own.begun = time.Time{}
		case own.begun.IsZero():
			own.begun, wait = now, minorInterval
		default:
			wait = max(own.begun.Add(minorInterval).Sub(now), 0)
		}
	})
	return wait
}

// isReplaced reports whether another object has the owner's name by now.
func (s *Statuses[O, T]) isReplaced(ctx context.Context, owner O) bool {
	now := named(owner)
	err := s.executor.Writer.Read(ctx, now)
	return apierrors.IsNotFound(err) || (err == nil && now.GetUID() != owner.GetUID())
}

// statusChange returns a status as JSON, or nil when it is the stored one, and whether it speaks of a newer spec than that.
func statusChange(stored, status any) (content json.RawMessage, urgent bool, err error) {
	if equality.Semantic.DeepEqual(stored, status) {
		return nil, false, nil // as at rest, and far cheaper than to compare what is written
	}
	was, err := json.Marshal(stored)
	if err != nil {
		return nil, false, err
	}
	content, err = json.Marshal(status)
	if err != nil || bytes.Equal(was, content) {
		return nil, false, err
	}
	var before, after struct{ ObservedGeneration int64 }
	err = errors.Join(json.Unmarshal(was, &before), json.Unmarshal(content, &after))
	return content, before != after, err
}

// wait returns how long it is too early for a status, and takes it for written if it is not.
func (s *Statuses[O, T]) wait(after O, status string, urgent bool) (wait time.Duration) {
	final, now := s.Final != nil && s.Final(after), s.executor.Now()
	s.executor.owners.Do(after.GetUID(), func(m *memory) {
		own := &m.status
		urgent = urgent || final && (s.turns == nil || own.isNews(after.GetGeneration()))
		if s.turns != nil && !urgent {
			if wait = s.turns.wait(&own.turn, status, now); wait > 0 {
				return
			}
		}
		if wait = own.take(now); urgent {
			wait = 0
		}
		if wait == 0 {
			own.turn = turn{}
		}
	})
	return wait
}

// isNews reports whether a final status is the first of its generation. That all is done again after one more Pod has come is no news.
func (m *statusMemory) isNews(generation int64) bool {
	known := m.isFinal && m.final == generation
	m.isFinal, m.final = true, generation
	return !known
}

// take uses up one write of the owner's burst, or returns the time until there is one.
func (m *statusMemory) take(now time.Time) time.Duration {
	if m.limiter == nil {
		m.limiter = rate.NewLimiter(rate.Every(statusInterval), statusBurst)
	}
	next := m.limiter.ReserveN(now, 1)
	wait := next.DelayFrom(now).Round(time.Microsecond) // it is computed from fractions of seconds
	if wait > 0 {
		next.CancelAt(now)
	}
	return wait
}

const (
	// burstWindow is the time whose changes may come at once before owners take turns: short, so that the first of many are few.
	burstWindow = time.Second / 4
	// quietAfter is how long no more statuses than the rate have to change for turns to end.
	quietAfter = time.Second
	// maxTurnWait is how soon a status that waits for its turn is tried again.
	maxTurnWait = time.Second
)

// turns keeps the statuses of many owners that all change at once within a rate. Each Pod that is created may change what several owners
// count: at hundreds a second the API server would be busier with counts, which nobody can read that fast, than with the Pods.
//
// As long as no more statuses change than the rate, each is written at once. With more, the owners whose status has changed take turns, and
// each writes what is true at its turn. When it is quiet again those that still wait write within maxTurnWait: every count is true within
// two seconds of the last change.
//
// Example: at a rate of 30, the statuses of 300 owners that change all the time are up to ten seconds old.
type turns struct {
	limit rate.Limit
	// changes allows as many changes as do without turns; until busyUntil there were more.
	changes   *rate.Limiter
	busyUntil time.Time
	// next gives the turns away.
	next *rate.Limiter
}

// turn is when an owner's status may be written, and what it was when it was last seen; the zero turn is none.
type turn struct {
	at     time.Time
	status string
}

func newTurns(perSecond int) *turns {
	burst := max(1, perSecond*int(burstWindow)/int(time.Second))
	return &turns{limit: rate.Limit(perSecond), changes: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// wait returns how long it is too early to write a status, which differs from the stored one, and gives its owner a turn.
func (t *turns) wait(own *turn, status string, now time.Time) time.Duration {
	if own.status != status && !t.changes.AllowN(now, 1) {
		if !t.isBusy(now) {
			t.next = rate.NewLimiter(t.limit, 1)
		}
		t.busyUntil = now.Add(quietAfter)
	}
	switch {
	case !t.isBusy(now):
		own.at = now
	case own.at.IsZero():
		own.at = now.Add(t.next.ReserveN(now, 1).DelayFrom(now))
	}
	own.status = status
	return min(max(own.at.Sub(now), 0), maxTurnWait)
}

func (t *turns) isBusy(now time.Time) bool { return now.Before(t.busyUntil) }
