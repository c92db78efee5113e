package promises

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// Process is a controller that hears of events through the same handlers as in a manager.
type Process struct {
	reconcile.Reconciler
	Ears []Ear
}

// Ear hears of an event, if it is of its type.
type Ear func(simulate.Event, *simulate.Queue)

// Hear lets all ears hear.
func (p *Process) Hear(e simulate.Event, queue *simulate.Queue) {
	for _, ear := range p.Ears {
		ear(e, queue)
	}
}

// On hears what happens to objects of a type.
func On[T client.Object](h handler.TypedEventHandler[T, reconcile.Request]) Ear {
	return func(e simulate.Event, queue *simulate.Queue) {
		before, existed := e.Old.(T)
		after, exists := e.New.(T)
		switch ctx := context.Background(); {
		case existed && exists:
			h.Update(ctx, event.TypedUpdateEvent[T]{ObjectOld: before, ObjectNew: after}, queue)
		case exists:
			h.Create(ctx, event.TypedCreateEvent[T]{Object: after}, queue)
		case existed:
			h.Delete(ctx, event.TypedDeleteEvent[T]{Object: before}, queue)
		}
	}
}
