package refusal

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

const (
	// eventInterval is the shortest time between two events on an object: clients that are refused try again, some every second.
	eventInterval = time.Minute
	// maxRemembered is how many objects are remembered before those whose event is older than eventInterval are dropped.
	maxRemembered = 1000
)

// Events tells of refusals in events on objects, of each once a minute at most. A nil Events tells nothing.
type Events struct {
	recorder record.EventRecorder
	now      func() time.Time

	mu   sync.Mutex
	last map[types.UID]time.Time
}

// NewEvents returns Events.
func NewEvents(recorder record.EventRecorder, now func() time.Time) *Events {
	return &Events{recorder: recorder, now: now, last: map[types.UID]time.Time{}}
}

// Due reports whether an object has had no event for a minute. If so, it is taken to get one now.
func (e *Events) Due(uid types.UID) bool {
	if e == nil {
		return false
	}
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if last, ok := e.last[uid]; ok && now.Sub(last) < eventInterval {
		return false
	}
	if len(e.last) >= maxRemembered {
		maps.DeleteFunc(e.last, func(_ types.UID, last time.Time) bool { return now.Sub(last) >= eventInterval })
	}
	e.last[uid] = now
	return true
}

// Warn writes an event on an object that Due was asked about.
func (e *Events) Warn(o runtime.Object, reason, message string) {
	e.recorder.Event(o, corev1.EventTypeWarning, reason, message)
}
