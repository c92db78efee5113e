package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// rest measures a CloneSet at which nothing is to be done: for a while, and again over a crash of the manager. Nothing should be written.
func (b *bench) rest(ctx context.Context) ([]measurement, error) {
	const namespace = "bench-rest"
	c := contender{name: "CloneSet", make: cloneSet, pids: func() []int { return b.managers(1) }}
	w, err := b.workload(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	seen, err := watchPods(ctx, b.of(c), namespace)
	if err != nil {
		return nil, err
	}
	defer seen.stop()
	if err := b.edit(ctx, w.object, func() { w.replicas(int32(b.pods)) }); err != nil {
		return nil, err
	}
	if err := b.await(ctx, w, int32(b.pods), seen); err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "CloneSet: at rest")
	idle, err := b.settled(ctx, c, b.idle)
	if err != nil {
		return nil, err
	}
	idle.Phase = atRest
	fmt.Fprintln(os.Stderr, "CloneSet: restart")
	began := time.Now()
	if err := b.hub().restart(ctx); err != nil {
		return nil, err
	}
	again, err := b.still(ctx, c, began, b.idle)
	again.Phase = restart
	return []measurement{idle, again}, err
}

// settled counts what the managers of a contender do for a while, once events and the last status have been written.
func (b *bench) settled(ctx context.Context, c contender, span time.Duration) (measurement, error) {
	if err := sleep(ctx, 5*time.Second); err != nil {
		return measurement{}, err
	}
	return b.still(ctx, c, time.Now(), span)
}

// still counts what the managers of a contender have done since a moment, and do for a while from now on.
func (b *bench) still(ctx context.Context, c contender, began time.Time, span time.Duration) (measurement, error) {
	m := measurement{Contender: c.name, Seconds: time.Since(began).Seconds()}
	cpu, err := cpuSeconds(c.pids())
	if err != nil {
		return m, err
	}
	if err := sleep(ctx, span); err != nil {
		return m, err
	}
	after, err := cpuSeconds(c.pids())
	if err != nil {
		return m, err
	}
	m.CPUSeconds = after - cpu
	if m.PeakMiB, err = peakMiB(c.pids()); err != nil {
		return m, err
	}
	requests, err := asked(b.of(c), audit.Query{Agent: "kruise-manager", From: began, To: time.Now()})
	m.Requests, m.Conflicts = requests.Counts, requests.Conflicts
	m.WritesPerPod = float64(requests.Writes())
	return m, err
}

// awaitCalm waits until a manager that has just started has written what a start asks for, so that the first phase does not pay for it.
func (b *bench) awaitCalm(ctx context.Context) error {
	const calm = 3 * time.Second
	for began := time.Now(); time.Since(began) < b.limit; {
		if err := sleep(ctx, calm); err != nil {
			return err
		}
		asked, err := audit.Read(b.hub().audit, audit.Query{Agent: "kruise-manager", From: time.Now().Add(-calm)})
		if err != nil || asked.Writes() == 0 {
			return err
		}
	}
	return b.brokenOff("until the manager has no more to write")
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
