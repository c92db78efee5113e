package apply

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// PerOwner keeps a value in memory for each owner. The zero PerOwner is empty and ready for use.
type PerOwner[T any] struct {
	mu sync.Mutex
	of map[types.UID]*T
}

// Do calls a function with the value of an owner, the zero value at first. No two calls overlap.
func (p *PerOwner[T]) Do(owner types.UID, use func(*T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	value := p.of[owner]
	if value == nil {
		value = new(T)
		if p.of == nil {
			p.of = map[types.UID]*T{}
		}
		p.of[owner] = value
	}
	use(value)
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
	// backoffs are of optional creates that the API server refused, by name.
	backoffs map[string]backoff
	// held are the holds of the last pass whose events were emitted.
	held   map[plan.Hold]bool
	status statusMemory
}

// Forget drops what is remembered of an owner that is gone.
func (e *Executor) Forget(owner types.UID) { e.owners.Forget(owner) }

// maxTaken is the number of names remembered for one owner; the older half makes room for more.
const maxTaken = 64

// noteTaken remembers a name that the owner could not create an object of, because another object has it. Names of new objects are derived from
// what is there, so that a create whose answer got lost is asked for again under the same name; an object that the owner does not see, such as a
// Pod that it has released, would be asked for for ever.
func (m *memory) noteTaken(name string) {
	if slices.Contains(m.taken, name) {
		return
	}
	if len(m.taken) == maxTaken {
		m.taken = slices.Clone(m.taken[maxTaken/2:])
	}
	m.taken = append(m.taken, name)
}

// TakenNames returns names that the owner tried to create objects of and that objects of others had, sorted.
func (e *Executor) TakenNames(owner types.UID) (names []string) {
	e.owners.Do(owner, func(m *memory) { names = slices.Sorted(slices.Values(m.taken)) })
	return names
}
