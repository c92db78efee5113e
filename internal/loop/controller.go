package loop

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seed-69ecc383/kruise/internal/apply"
)

// Config is what a controller works with. O are the choices that are made for the whole of it at start-up.
type Config[O any] struct {
	Options  O
	Executor *apply.Executor
	// Live reads around the cache.
	Live client.Reader
	// Workers is the number of owners looked after at the same time.
	Workers int
	Now     func() time.Time
}

// None is what the Options are of a controller with nothing to choose.
type None struct{}

// Controller is a loop and what wakes it.
type Controller struct {
	Name       string
	Reconciler reconcile.Reconciler
	// Workers is the number of owners looked after at the same time.
	Workers int
	// Sources are the events that ask for a look at an owner.
	Sources []source.Source
}

// AddTo has a manager run the controller.
func (c Controller) AddTo(mgr manager.Manager) error {
	ctl, err := controller.New(c.Name, mgr, controller.Options{Reconciler: c.Reconciler, MaxConcurrentReconciles: c.Workers})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	for _, s := range c.Sources {
		if err := ctl.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}
