package apply

import (
	"cmp"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Events tells users what was done, after it was done, and what is held back, once.
type Events struct {
	recorder record.EventRecorder
	mu       sync.Mutex
	held     map[types.UID]map[plan.Hold]bool
}

// NewEvents returns Events that go to the recorder.
func NewEvents(recorder record.EventRecorder) *Events {
	return &Events{recorder: recorder, held: map[types.UID]map[plan.Hold]bool{}}
}

// after tells of an action's outcome.
func (e *Events) after(owner plan.Object, a plan.Action, err error) {
	on := owner
	if a.OnObject {
		on = a.Object()
	}
	switch {
	case err == nil && a.Event != "":
		e.recorder.Event(on, cmp.Or(a.EventType, corev1.EventTypeNormal), a.Event, a.EventMessage)
	case a.FailedEvent != "" && IsFailure(err):
		e.recorder.Event(on, corev1.EventTypeWarning, a.FailedEvent, a.FailedPrefix+err.Error())
	}
}

// Held tells of what a plan holds back, and only of what its owner's plan before did not hold back in the same words.
func (e *Events) Held(owner plan.Object, p plan.Plan) {
	now := map[plan.Hold]bool{}
	for _, h := range p.Holds {
		if h.Event != "" {
			now[h] = true
		}
	}
	e.mu.Lock()
	before := e.held[owner.GetUID()]
	if len(now) == 0 {
		delete(e.held, owner.GetUID())
	} else {
		e.held[owner.GetUID()] = now
	}
	e.mu.Unlock()
	for h := range now {
		if !before[h] {
			on := runtime.Object(owner)
			if h.On != (plan.Reference{}) {
				on = &corev1.ObjectReference{APIVersion: h.On.APIVersion, Kind: h.On.Kind, Namespace: h.On.Namespace, Name: h.On.Name, UID: h.On.UID}
			}
			e.recorder.Event(on, cmp.Or(h.EventType, corev1.EventTypeWarning), h.Event, h.Why)
		}
	}
}

// Forget drops what is known of an owner that is gone.
func (e *Events) Forget(owner types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.held, owner)
}
