package promises

import (
	stdcmp "cmp"
	"context"
	"reflect"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/plan"
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

// Runtime is what a kind runs with over the connection.
func (c Connection) Runtime() loop.Runtime {
	return loop.Runtime{Executor: c.Executor, Live: c.Live, Workers: 1}
}

// Start starts the controller of a kind, with all events that it watches in a manager.
func Start[O plan.Object, S, T any](k loop.Kind[O, S, T], r loop.Runtime, c Connection) *Process {
	if indexer, ok := c.Cached.Reader.(client.FieldIndexer); ok && k.Indexes != nil {
		if err := k.Indexes(context.Background(), indexer); err != nil {
			panic(err)
		}
	}
	if status := k.Status; status != nil && c.Report != nil {
		k.Status = func(state S, decided plan.Plan, done apply.Outcome) T {
			first, second := status(state, decided, done), status(state, decided, done)
			if diff := cmp.Diff(first, second); diff != "" {
				c.Report("computing a status twice differs:\n" + diff)
			}
			return second
		}
	}
	l := loop.New(k, r, c.Cached, c.Live)
	l.BetweenCreates = c.Between
	if !c.TrustsPast {
		l.Begin()
	}
	events, err := l.Events()
	if err != nil {
		panic(err)
	}
	p := &Process{Reconciler: l}
	for _, watch := range events {
		hear := On(watch.Handler)
		p.Ears = append(p.Ears, func(e simulate.Event, queue *simulate.Queue) {
			e.IsInitial = e.IsInitial && !c.TrustsPast
			if of := stdcmp.Or(e.New, e.Old); reflect.TypeOf(watch.Object) == reflect.TypeOf(of) {
				hear(e, queue)
			}
		})
	}
	return p
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
			h.Create(ctx, event.TypedCreateEvent[T]{Object: after, IsInInitialList: e.IsInitial}, queue)
		case existed:
			h.Delete(ctx, event.TypedDeleteEvent[T]{Object: before}, queue)
		}
	}
}
