package loop

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Tracer is told what passes come to. It is called by many passes at a time.
type Tracer interface {
	// Note takes in what a pass came to. It must not change any of it.
	Note(Pass)
	// Forget drops what is kept of an owner that is gone.
	Forget(owner types.UID)
}

// Pass is what a pass over an owner came to.
type Pass struct {
	// Owner has the status that the pass has computed, which may be stored later.
	Owner   plan.Object
	Release plan.Release
	Plan    plan.Plan
	Outcome apply.Outcome
	// Began and Ended are the times of the pass.
	Began, Ended time.Time
}

// traced returns the time, if passes of the kind are traced.
func (l *Loop[O, S, T]) traced() (now time.Time) {
	if l.Tracer != nil && l.Release != nil {
		now = l.Executor.Now()
	}
	return now
}

// trace tells of a pass that began at a time; that is zero if passes are not traced. The status is computed once more, which changes
// nothing.
func (l *Loop[O, S, T]) trace(began time.Time, state S, p Pass) {
	if began.IsZero() {
		return
	}
	after := p.Owner.DeepCopyObject().(O)
	if l.Status != nil {
		*l.StatusOf(after) = l.Status(state, p.Plan, p.Outcome)
	}
	p.Owner, p.Release, p.Began, p.Ended = after, l.Release(state, after), began, l.Executor.Now()
	l.Tracer.Note(p)
}
