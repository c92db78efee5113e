package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/test/kit/audit"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// rest measures a CloneSet at which nothing is to be done: for a while, and again over a crash of the manager. Nothing should be written.
func (b *bench) rest(ctx context.Context, restart func() (*cluster.Manager, error)) ([]measurement, error) {
	const namespace = "bench-rest"
	if err := b.cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, err
	}
	w := cloneSet(namespace)
	w.replicas(int32(b.pods))
	if err := b.cluster.Client.Create(ctx, w.object); err != nil {
		return nil, err
	}
	seen, err := b.watchPods(ctx, namespace)
	if err != nil {
		return nil, err
	}
	defer seen.stop()
	if err := b.await(ctx, w, int32(b.pods), seen); err != nil {
		return nil, err
	}
	// Events and the last status are still on their way.
	if err := sleep(ctx, 5*time.Second); err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "CloneSet: at rest")
	idle, err := b.still(ctx, "at rest", func() error { return nil })
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "CloneSet: restart")
	again, err := b.still(ctx, "restart", func() error {
		b.manager.Kill()
		var err error
		b.manager, err = restart()
		return err
	})
	return []measurement{idle, again}, err
}

// still counts what the manager does from before begin until the idle time is over.
func (b *bench) still(ctx context.Context, name string, begin func() error) (measurement, error) {
	m := measurement{Contender: "CloneSet", Phase: name}
	began := time.Now()
	if err := begin(); err != nil {
		return m, err
	}
	m.Seconds = time.Since(began).Seconds()
	cpu, err := cluster.CPUSeconds(b.manager.PID())
	if err != nil {
		return m, err
	}
	if err := sleep(ctx, b.idle); err != nil {
		return m, err
	}
	after, err := cluster.CPUSeconds(b.manager.PID())
	if err != nil {
		return m, err
	}
	m.CPUSeconds = after - cpu
	if m.PeakMiB, err = peakMiB(b.manager.PID()); err != nil {
		return m, err
	}
	asked, err := audit.Read(b.audit, audit.Query{Agent: "kruise-manager", From: began, To: time.Now()})
	m.Requests, m.Conflicts = asked.Counts, asked.Conflicts
	m.WritesPerPod = float64(asked.Writes())
	return m, err
}

// awaitCalm waits until a manager that has just started has written what a start asks for, so that the first phase does not pay for it.
func (b *bench) awaitCalm(ctx context.Context) error {
	const calm = 3 * time.Second
	for began := time.Now(); time.Since(began) < b.limit; {
		if err := sleep(ctx, calm); err != nil {
			return err
		}
		asked, err := audit.Read(b.audit, audit.Query{Agent: "kruise-manager", From: time.Now().Add(-calm)})
		if err != nil || asked.Writes() == 0 {
			return err
		}
	}
	return fmt.Errorf("waiting for the manager to have no more to write: %w", errBrokenOff)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
