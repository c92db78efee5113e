package apply

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// emit tells of an action's outcome.
func (e *Executor) emit(owner plan.Object, a plan.Action, err error) {
	on := owner
	if a.OnObject {
		on = a.Object()
	}
	switch {
	case err == nil && a.Event != "":
		e.Events.Event(on, cmp.Or(a.EventType, corev1.EventTypeNormal), a.Event, a.EventMessage)
	case a.FailedEvent != "" && IsFailure(err):
		e.Events.Event(on, corev1.EventTypeWarning, a.FailedEvent, a.FailedPrefix+err.Error())
	}
}

// EmitHolds tells of what a plan holds back, and only of what its owner's plan before did not hold back in the same words.
func (e *Executor) EmitHolds(owner plan.Object, p plan.Plan) {
	var now map[plan.Hold]bool
	for _, h := range p.Holds {
		if h.Event != "" {
			if now == nil {
				now = map[plan.Hold]bool{}
			}
			now[h] = true
		}
	}
	var before map[plan.Hold]bool
	e.owners.Do(owner.GetUID(), func(m *memory) { before, m.held = m.held, now })
	for h := range now {
		if !before[h] {
			on := runtime.Object(owner)
			if h.On != (plan.Reference{}) {
				on = &corev1.ObjectReference{APIVersion: h.On.APIVersion, Kind: h.On.Kind, Namespace: h.On.Namespace, Name: h.On.Name, UID: h.On.UID}
			}
			e.Events.Event(on, cmp.Or(h.EventType, corev1.EventTypeWarning), h.Event, h.Why)
		}
	}
}
