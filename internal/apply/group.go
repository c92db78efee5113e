package apply

import (
	"sync"
	"sync/atomic"
)

// Group is goroutines that are waited for. When one panics, Wait does, in the goroutine of the pass: the controller recovers it there, and
// only this pass fails.
type Group struct {
	sync.WaitGroup
	panicked atomic.Pointer[any]
}

// Go runs a function in a goroutine of its own.
func (g *Group) Go(run func()) {
	g.WaitGroup.Go(func() {
		defer func() {
			if cause := recover(); cause != nil {
				g.panicked.Store(&cause)
			}
		}()
		run()
	})
}

// Wait returns when all of them have, and panics if one has.
func (g *Group) Wait() {
	g.WaitGroup.Wait()
	if cause := g.panicked.Load(); cause != nil {
		panic(*cause)
	}
}
