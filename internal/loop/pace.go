package loop

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// pace keeps the passes over an owner apart. It remembers, for each owner that was looked at, of which generation that was and when the next pass
// may begin.
type pace struct {
	mu    sync.Mutex
	owner map[types.UID]paced
}

type paced struct {
	generation int64
	next       time.Time
}

// note has the next pass over an owner begin no earlier than at a moment.
func (p *pace) note(owner plan.Object, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner == nil {
		p.owner = map[types.UID]paced{}
	}
	p.owner[owner.GetUID()] = paced{generation: owner.GetGeneration(), next: next}
}

// wait returns how long it is too early for a pass over an owner. It never is for a spec that no pass has seen.
func (p *pace) wait(owner plan.Object, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.owner[owner.GetUID()]
	if !known || last.generation != owner.GetGeneration() {
		return 0
	}
	return max(last.next.Sub(now), 0)
}

// forget drops what is known of an owner that is gone.
func (p *pace) forget(owner types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.owner, owner)
}
