package apply

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// mostTaken is the number of names remembered for one owner; the older half makes room for more.
const mostTaken = 64

// takenNames remembers names that an owner could not create objects of, because others have them. Names of new objects are derived from what
// is there, so that a create whose answer got lost is asked for again under the same name; an object that the owner does not see, such as a
// Pod that it has let go, would be asked for for ever.
type takenNames struct {
	mu    sync.Mutex
	names map[types.UID][]string
}

func (t *takenNames) add(owner types.UID, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[types.UID][]string{}
	}
	names := t.names[owner]
	if slices.Contains(names, name) {
		return
	}
	if len(names) == mostTaken {
		names = slices.Clone(names[mostTaken/2:])
	}
	t.names[owner] = append(names, name)
}

// Taken returns names that the owner tried to create objects of and that objects of others had, sorted.
func (e *Executor) Taken(owner types.UID) []string {
	e.taken.mu.Lock()
	defer e.taken.mu.Unlock()
	return slices.Sorted(slices.Values(e.taken.names[owner]))
}

// Forget drops what is kept in memory of an owner that is gone.
func (e *Executor) Forget(owner types.UID) {
	e.Consistency.Forget(owner)
	e.Events.Forget(owner)
	e.paces.Delete(owner)
	e.refused.forget(owner)
	e.taken.mu.Lock()
	defer e.taken.mu.Unlock()
	delete(e.taken.names, owner)
}
