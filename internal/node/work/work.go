// Package work is what the daemon's workers are made of that begin things which outlast a look at the object that asks for them: pulls, questions,
// stops of containers.
package work

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Life returns a context that ends with the manager.
func Life(mgr ctrlmanager.Manager) (context.Context, error) {
	life, end := context.WithCancel(context.Background())
	if err := mgr.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		end()
		return nil
	})); err != nil {
		end()
		return nil, fmt.Errorf("adding the end of what workers begin: %w", err)
	}
	return life, nil
}

// Bell asks for a look at everything there is. However often it rings until then, one look follows.
type Bell struct {
	rings chan event.GenericEvent
}

// NewBell returns a Bell.
func NewBell() Bell { return Bell{rings: make(chan event.GenericEvent, 1)} }

// Ring asks for a look. It never waits. object is of the kind that is looked at; which one does not matter.
func (b Bell) Ring(object client.Object) {
	select {
	case b.rings <- event.GenericEvent{Object: object}:
	default: // a look is asked for already
	}
}

// Source hands every ring to a handler.
func (b Bell) Source(to handler.EventHandler) source.TypedSource[reconcile.Request] {
	return source.Channel(b.rings, to)
}
