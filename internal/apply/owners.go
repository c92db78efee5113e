package apply

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// PerOwner keeps a value in memory for each owner. The zero PerOwner is empty and ready for use.
type PerOwner[T any] struct {
	mu sync.Mutex
	of map[types.UID]*T
}

// Do calls a function with the value of an owner, the zero value at first, and keeps it. No two calls overlap.
func (p *PerOwner[T]) Do(owner types.UID, use func(*T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[types.UID]*T{}
	}
	if p.of[owner] == nil {
		p.of[owner] = new(T)
	}
	use(p.of[owner])
}

// Peek calls a function with the value of an owner, if one is kept.
func (p *PerOwner[T]) Peek(owner types.UID, use func(*T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if value := p.of[owner]; value != nil {
		use(value)
	}
}

// Len returns the number of owners with a value.
func (p *PerOwner[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.of)
}

// Forget drops the value of an owner that is gone.
func (p *PerOwner[T]) Forget(owner types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, owner)
}

// memory is what an Executor remembers of an owner from one pass to the next.
type memory struct {
	writes writes
	// batch is how many creates are tried at once; 0 is 1.
	batch int
	// taken are names that objects of others have.
	taken []string
	// former are names of Pods that are on their way out or gone.
	former []string
	// sent is when creates were sent of which nobody knows whether they happened, by name.
	sent map[string]time.Time
	// backoffs are of optional creates that the API server refused, by name.
	backoffs map[string]backoff
	// held are the holds of the last pass whose events were emitted.
	held   map[plan.Hold]bool
	status statusMemory
}

// Forget drops what is remembered of an owner that is gone, and its metrics.
func (e *Executor) Forget(owner plan.Object) {
	e.owners.Forget(owner.GetUID())
	e.questions.forget(client.ObjectKeyFromObject(owner))
	forgetLate(owner)
}

// Remembered returns the number of owners of which something is remembered.
func (e *Executor) Remembered() int { return e.owners.Len() }

// The number of names remembered for one owner; the older half makes room for more.
const (
	maxTaken  = 64
	maxFormer = 1024
)

// noteTaken remembers a name that the owner could not create an object of, because another object has it. Names of new objects are derived
// from what is there, so that a create whose answer got lost is asked for again under the same name; an object that the owner does not see,
// such as a Pod that it has released, would be asked for for ever.
func (m *memory) noteTaken(name string) { m.taken = remember(m.taken, name, maxTaken) }

// remember adds a name to those that are remembered, of which there are so many at most.
func remember(names []string, name string, most int) []string {
	if slices.Contains(names, name) {
		return names
	}
	if len(names) == most {
		names = slices.Clone(names[most/2:])
	}
	return append(names, name)
}

// TakenNames returns names that the owner tried to create objects of and that objects of others had, sorted.
func (e *Executor) TakenNames(owner types.UID) (names []string) {
	e.owners.Peek(owner, func(m *memory) { names = slices.Sorted(slices.Values(m.taken)) })
	return names
}

// mayLand is how long after a create with an unknown outcome it may still happen. API servers give up a request after a minute.
const mayLand = time.Minute

// noteSent remembers that a create was sent and may still happen.
func (e *Executor) noteSent(owner types.UID, name string) {
	e.owners.Do(owner, func(m *memory) {
		maps.DeleteFunc(m.sent, func(_ string, at time.Time) bool { return e.Now().Sub(at) >= mayLand })
		if m.sent == nil {
			m.sent = map[string]time.Time{}
		}
		m.sent[name] = e.Now()
	})
}

// FormerNames returns the names of the owner's Pods that were last seen to be on their way out or gone. A new Pod gets another one: whoever
// waits for a name to be gone, as after a drain, would wait for ever else. A name that was sent and may still come is not among them: a new
// Pod of that name is the one that comes, and there are not two.
func (e *Executor) FormerNames(owner types.UID) (names []string) {
	e.owners.Do(owner, func(m *memory) {
		names = slices.DeleteFunc(slices.Clone(m.former), func(name string) bool {
			at, sent := m.sent[name]
			return sent && e.Now().Sub(at) < mayLand
		})
	})
	return names
}

// NoteFormer remembers such a name, of an owner whose FormerNames were asked for.
func (e *Executor) NoteFormer(owner types.UID, name string) {
	e.owners.Peek(owner, func(m *memory) { m.former = remember(m.former, name, maxFormer) })
}

// An optional create that was refused is not tried again for a time that doubles with each refusal.
const (
	firstBackoff = 10 * time.Second
	maxBackoff   = 10 * time.Minute
)

// backoff is an optional create that the API server refused for what it asks. Nothing depends on it, so that asking for the same in every
// pass serves nobody.
type backoff struct {
	object plan.Object
	why    string
	until  time.Time
	pause  time.Duration
}

// mayBackOff reports whether an action is one that backs off after a refusal.
func mayBackOff(a plan.Action) bool { return a.Optional && a.Verb == plan.Create }

// backsOff reports whether an action need not be tried now: the same was refused a short while ago.
func (m *memory) backsOff(a plan.Action, now time.Time) bool {
	if !mayBackOff(a) {
		return false
	}
	known, ok := m.backoffs[backoffKey(a)]
	return ok && now.Before(known.until) && equality.Semantic.DeepEqual(known.object, a.After)
}

// backoffKey is what a refusal is remembered by: objects of one owner may have the same name in several namespaces.
func backoffKey(a plan.Action) string { return a.After.GetNamespace() + "/" + a.After.GetName() }

// noteRefused notes the outcome of an action that was tried, and reports whether it was refused before in the same words.
func (m *memory) noteRefused(a plan.Action, err error, now time.Time) (again bool) {
	name := backoffKey(a)
	if !isClientError(err) {
		delete(m.backoffs, name)
		return false
	}
	known, ok := m.backoffs[name]
	again = ok && known.why == err.Error()
	known.pause = min(max(firstBackoff, 2*known.pause), maxBackoff)
	if !again {
		known.pause = firstBackoff
	}
	known.object, known.why, known.until = a.After, err.Error(), now.Add(known.pause)
	if m.backoffs == nil {
		m.backoffs = map[string]backoff{}
	}
	maps.DeleteFunc(m.backoffs, func(_ string, old backoff) bool { return now.Sub(old.until) > maxBackoff }) // no longer asked for
	m.backoffs[name] = known
	return again
}

// isClientError reports whether the API server understood what was asked and refused it for what it is, not because it was busy.
func isClientError(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// refusedFor is how long an object is skipped after a write to it was refused, as by a budget or a policy: others get their turn meanwhile.
const refusedFor = 10 * time.Second

// Refused remembers objects for which a write of one verb and concern was refused, and until when they are skipped by the owner that the
// write was for. Other owners may want another write.
type Refused struct {
	Verb    plan.Verb
	Concern plan.Concern

	mu    sync.Mutex
	until map[refusal]time.Time
}

// refusal tells which write was refused.
type refusal struct{ owner, object types.UID }

// Note remembers what was refused in a pass over an owner.
func (r *Refused) Note(owner types.UID, done Outcome, now time.Time) {
	for _, result := range done.Results {
		if !IsRefused(result.Err) || result.Action.Concern != r.Concern || result.Action.Verb != r.Verb {
			continue
		}
		r.mu.Lock()
		if r.until == nil {
			r.until = map[refusal]time.Time{}
		}
		r.until[refusal{owner, result.Action.Before.GetUID()}] = now.Add(refusedFor)
		r.mu.Unlock()
	}
}

// Present returns the objects that an owner still skips.
func (r *Refused) Present(owner types.UID, now time.Time) map[types.UID]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.until, func(_ refusal, until time.Time) bool { return !until.After(now) })
	out := map[types.UID]time.Time{}
	for of, until := range r.until {
		if of.owner == owner {
			out[of.object] = until
		}
	}
	return out
}

// IsRefused reports whether the API server understood a write and refused it: the same write right after would be refused, too.
func IsRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsTooManyRequests(err)
}
