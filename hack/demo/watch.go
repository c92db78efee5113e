package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/controller/cloneset"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// watch shows a CloneSet until it is done: what there is, and what the manager's plans do and why, as its log tells.
func (d *demo) watch(ctx context.Context, title string, done func(*v1beta1.CloneSet) bool) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	d.screen.begin(title)
	for {
		var set v1beta1.CloneSet
		if err := d.cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &set); err != nil {
			return fmt.Errorf("reading CloneSet %s: %w", name, err)
		}
		seen, err := cloneset.Observe(ctx, observe.Reader{Reader: d.cluster.Client}, &set, time.Now())
		if err != nil {
			return fmt.Errorf("observing CloneSet %s: %w", name, err)
		}
		plans, err := d.plans.next(name)
		if err != nil {
			return fmt.Errorf("reading the manager's log: %w", err)
		}
		d.screen.show(seen, plans)
		if done(&set) {
			d.screen.end()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for CloneSet %s: %w", name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
