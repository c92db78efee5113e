package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// play is a performance with one of the examples.
type play[T client.Object] struct {
	// example is the name of the file, object an empty one with the name that the workload has there.
	example string
	object  func() T
	// counts are the numbers of the status, as kubectl get shows them.
	counts func(T) string
	// prepare makes what the example needs; nil for nothing.
	prepare func(context.Context, *demo) error
	// steps follow each other; the first one is what the example itself brings about.
	steps []step[T]
	// next is what to try afterwards.
	next string
}

// step is a change, and what it is to bring about.
type step[T client.Object] struct {
	title  string
	change func(T)
	done   func(T) bool
}

func (p play[T]) perform(ctx context.Context, d *demo) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	if p.prepare != nil {
		if err := p.prepare(ctx, d); err != nil {
			return err
		}
	}
	if err := d.cluster.ApplyFileIn(ctx, filepath.Join(root, "examples", p.example), namespace); err != nil {
		return err
	}
	for i, s := range p.steps {
		if s.change != nil {
			if err := p.edit(ctx, d, s.change); err != nil {
				return err
			}
		}
		d.screen.begin(fmt.Sprintf("%d. %s", i+1, s.title))
		d.pods.begin()
		if err := p.watch(ctx, d, s.done); err != nil {
			return err
		}
	}
	fmt.Printf(`
The cluster is still up. Try next:

  export PATH=$PWD/bin:$PATH                           where kubectl finds its plugin, kubectl-kruise
  alias k='kruise-local kubectl'                       the real kubectl, at this cluster
  k config set-context --current --namespace=%s        kubectl takes no -n before the name of a plugin
%s  ls examples/                                         more manifests
  bin/kruise-local down                                removes all of it
`, namespace, p.next)
	return nil
}

func (p play[T]) edit(ctx context.Context, d *demo, change func(T)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := p.read(ctx, d)
		if err != nil {
			return err
		}
		change(now)
		return d.cluster.Client.Update(ctx, now)
	})
}

func (p play[T]) read(ctx context.Context, d *demo) (T, error) {
	now := p.object()
	now.SetNamespace(namespace)
	if err := d.cluster.Client.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
		return now, fmt.Errorf("reading %s: %w", now.GetName(), err)
	}
	return now, nil
}

// watch shows the workload until it is done: what there is, and what the manager's plans do and why, as its log tells.
func (p play[T]) watch(ctx context.Context, d *demo, done func(T) bool) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	for {
		now, err := p.read(ctx, d)
		if err != nil {
			return err
		}
		var pods corev1.PodList
		if err := d.cluster.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing Pods: %w", err)
		}
		plans, err := d.plans.next(now.GetName())
		if err != nil {
			return fmt.Errorf("reading the manager's log: %w", err)
		}
		d.screen.show(picture{counts: p.counts(now), table: d.pods.draw(pods.Items), news: deeds(plans)})
		if done(now) {
			d.screen.end()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", now.GetName(), ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
