package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
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
)

// Statuses writes the status of owners, no more often than anybody can read it.
type Statuses struct {
	// Exact writes a status only over the version of the owner that it was computed from. That is for a status that decides what is done
	// next, such as that a job is over: a write that arrives late must not take it back.
	Exact bool
	// Final, if there is one, reports whether an owner's status says that it has reached its goal. People and tools wait for just that, so
	// such a status is not delayed. As those before are, there can be no more of it than of them.
	Final func(plan.Object) bool
	// turns, if there are any, keep the owners' statuses together within a rate.
	turns    *turns
	executor *Executor
}

// statusMemory is what is remembered of the status of one owner.
type statusMemory struct {
	limiter *rate.Limiter
	turn    turn
	// final is the generation of the last final status that did not wait for its turn; isFinal that there was one.
	final   int64
	isFinal bool
}

// NewStatuses returns Statuses that write through the executor.
func NewStatuses(e *Executor) *Statuses { return &Statuses{executor: e} }

// NewLimitedStatuses returns Statuses for owners of which many may change at once. While they change faster than perSecond, no more than
// that are written, each with what is true by then. Not delayed are statuses that speak of a newer spec, nor the first final one of each
// spec: other than those of NewStatuses, later final ones are, as each new Pod may make an owner unfinished and finished again.
func NewLimitedStatuses(e *Executor, perSecond int) *Statuses {
	return &Statuses{executor: e, turns: newTurns(perSecond)}
}

// Write stores the status of after, if it differs from that of before. When it is too early for that, it returns how long to wait instead;
// a status that speaks of a newer spec is never too early, nor is a final one.
func (s *Statuses) Write(ctx context.Context, before, after plan.Object) (wait time.Duration, err error) {
	content, urgent, err := statusChange(before, after)
	if err != nil {
		return 0, err
	}
	if content == nil {
		s.executor.owners.Do(before.GetUID(), func(m *memory) { m.status.turn = turn{} })
		return 0, nil
	}
	if wait := s.wait(after, string(content), urgent); wait > 0 {
		return wait, nil
	}
	version := ""
	if s.Exact {
		version = before.GetResourceVersion()
	}
	encoded, err := statusPatch(before, content, version)
	if err != nil {
		return 0, err
	}
	object := named(after)
	err = s.executor.Writer.Patch(ctx, object, string(status), types.JSONPatchType, encoded)
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case apierrors.IsConflict(err):
		// Of a patch that goes for any version the API server has only lost a race with other writers too often, and no event may follow.
		return statusInterval, nil
	case apierrors.IsInvalid(err) && s.isReplaced(ctx, before):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("writing the status of %s: %w", before.GetName(), err)
	}
	return 0, s.executor.wrote(before, object)
}

// isReplaced reports whether another object has the owner's name by now.
func (s *Statuses) isReplaced(ctx context.Context, owner plan.Object) bool {
	now := named(owner)
	err := s.executor.Writer.Read(ctx, now)
	return apierrors.IsNotFound(err) || (err == nil && now.GetUID() != owner.GetUID())
}

// statusPatch returns the JSON patch that makes this the status, of one version of the object only, or of any where version is empty. It
// tests the UID, which the API server ignores in any other patch of a custom resource's status.
func statusPatch(before plan.Object, content json.RawMessage, version string) ([]byte, error) {
	patch := []operation{{"test", "/metadata/uid", before.GetUID()}, {"add", "/status", content}}
	if version != "" {
		patch = append(patch, operation{"replace", "/metadata/resourceVersion", version})
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of %s: %w", before.GetName(), err)
	}
	return encoded, nil
}

// statusChange returns the status of after as JSON, or nil when that of before is the same, and whether it speaks of a newer spec.
func statusChange(before, after plan.Object) (content json.RawMessage, urgent bool, err error) {
	was, is := statusField(before), statusField(after)
	if equality.Semantic.DeepEqual(was, is) {
		return nil, false, nil // as at rest, and far cheaper than to compare what is written
	}
	stored, err := encodeStatus(before, was)
	if err != nil {
		return nil, false, err
	}
	content, err = encodeStatus(after, is)
	if err != nil || bytes.Equal(stored, content) {
		return nil, false, err
	}
	return content, observedGeneration(is) != observedGeneration(was), nil
}

func encodeStatus(object plan.Object, status any) (json.RawMessage, error) {
	encoded, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of %s: %w", object.GetName(), err)
	}
	return encoded, nil
}

// statusField returns the status of an object in its Go type; nil for a kind without.
func statusField(object plan.Object) any { return fieldOf(object, "Status") }

// observedGeneration returns the generation of the spec that a status speaks of; nil for a status that tells of none.
func observedGeneration(status any) any { return fieldOf(status, "ObservedGeneration") }

// fieldOf returns the field of a struct, or of the struct that a pointer leads to; nil for anything without it.
func fieldOf(of any, name string) any {
	value := reflect.ValueOf(of)
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return nil
	}
	field := value.FieldByName(name)
	if !field.IsValid() {
		return nil
	}
	return field.Interface()
}

// wait returns how long it is too early for a status, and takes it for written if it is not.
func (s *Statuses) wait(after plan.Object, status string, urgent bool) (wait time.Duration) {
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
