package apply

import (
	"sync"
	"sync/atomic"
)

// Crew is goroutines that are waited for. When one panics, Wait does: in the goroutine of the pass it costs this pass only, as the controller
// recovers it.
type Crew struct {
	sync.WaitGroup
	panicked atomic.Pointer[any]
}

// Go runs a function in a goroutine of its own.
func (c *Crew) Go(run func()) {
	c.WaitGroup.Go(func() {
		defer func() {
			if cause := recover(); cause != nil {
				c.panicked.Store(&cause)
			}
		}()
		run()
	})
}

// Wait returns when all of them have, and panics if one has.
func (c *Crew) Wait() {
	c.WaitGroup.Wait()
	if cause := c.panicked.Load(); cause != nil {
		panic(*cause)
	}
}
