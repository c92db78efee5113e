package main

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// fleetReplicas is how many Pods each CloneSet of a fleet has, and fleetWorkers how many of its CloneSets are written at a time.
const fleetReplicas, fleetWorkers = 4, 8

// fleet is many small CloneSets in one namespace, all of which are changed at once.
type fleet struct {
	*bench
	contender contender
	namespace string
	size      int
}

// walk leads the fleet through the phases, once a manager that has just started leads, which a CloneSet without Pods shows.
func (f fleet) walk(ctx context.Context) ([]measurement, error) {
	if _, err := f.workload(ctx, f.contender, f.namespace); err != nil {
		return nil, err
	}
	all := f.size * fleetReplicas
	phases := []struct {
		name  string
		write func(number int) error
		done  func(context.Context) error
	}{
		{creating, func(number int) error { return f.hub().Client.Create(ctx, f.set(number)) }, f.await(all, updated)},
		{updatingInPlace, f.edits(ctx, func(set *v1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[0].Image = releasedImage
		}), f.await(all, updated)},
		{recreating, f.edits(ctx, func(set *v1beta1.CloneSet) { setEnvironment(&set.Spec.Template, "changed") }), f.await(all, updated)},
		{scalingIn, f.edits(ctx, func(set *v1beta1.CloneSet) { set.Spec.Replicas = new(int32(0)) }), f.awaitNone},
	}
	var out []measurement
	for _, phase := range phases {
		fmt.Fprintf(os.Stderr, "%d CloneSets: %s\n", f.size, phase.name)
		m, err := f.counted(f.contender, f.namespace, func() (int, error) {
			if err := atOnce(fleetWorkers, f.size, phase.write); err != nil {
				return 0, err
			}
			return all, phase.done(ctx)
		})
		m.Phase = phase.name
		out = append(out, m)
		if err != nil {
			return out, fmt.Errorf("phase %s of %d CloneSets: %w", phase.name, f.size, err)
		}
	}
	return out, nil
}

func (f fleet) set(number int) *v1beta1.CloneSet {
	return named(f.namespace, fmt.Sprintf("fleet-%04d", number), fleetReplicas)
}

// edits returns what changes the CloneSet with a number.
func (f fleet) edits(ctx context.Context, change func(*v1beta1.CloneSet)) func(int) error {
	return func(number int) error {
		set := f.set(number)
		return f.edit(ctx, set, func() { change(set) })
	}
}

func (f fleet) await(want int, count func(*v1beta1.CloneSet) int32) func(context.Context) error {
	return func(ctx context.Context) error { return f.awaitSets(ctx, f.namespace, count, want) }
}

// awaitNone waits until there are no Pods left.
func (f fleet) awaitNone(ctx context.Context) error {
	seen, err := watchPods(ctx, f.of(f.contender), f.namespace)
	if err != nil {
		return err
	}
	defer seen.stop()
	return f.until(ctx, "no Pods are left", func() (bool, error) { return seen.settled(0), nil })
}
