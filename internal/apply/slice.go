package apply

import (
	"sync"
	"time"
)

// sliceLength is how long a pass begins writes. While it lasts, nothing that happens to its owner is answered, and one of the workers of
// its kind is taken. So a pass over thousands of Pods does what it can within this time, and the pass after it goes on from what it finds
// then. With the writes that are under way in the end, and with reading and planning, a pass stays below a second where a write does.
const sliceLength = 400 * time.Millisecond

// slice is the time of one pass.
type slice struct {
	now   func() time.Time
	until time.Time

	mu          sync.Mutex
	begun, over bool
}

func newSlice(now func() time.Time) *slice {
	return &slice{now: now, until: now().Add(sliceLength)}
}

// begins reports whether one more chain of writes may begin. The first one may, however late it is, so that each pass gets further.
func (s *slice) begins() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = s.over || s.begun && !s.now().Before(s.until)
	s.begun = true
	return !s.over
}

// isOver reports whether a chain was not begun.
func (s *slice) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}
