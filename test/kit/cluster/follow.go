package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Follow calls see for every object of a namespace that list can hold, first as added and then with every event since, one at a time and
// without a gap: a watch that the API server ends, as it does when it is busy, goes on where it was. The returned function stops it and
// says what, if anything, may have been missed.
func (c *Cluster) Follow(ctx context.Context, list client.ObjectList, namespace string, see func(watch.Event)) (stop func() error,
	err error) {
	s, err := Scheme()
	if err != nil {
		return nil, err
	}
	watching, err := client.NewWithWatch(c.Config, client.Options{Scheme: s})
	if err != nil {
		return nil, err
	}
	if err := watching.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing what to follow: %w", err)
	}
	if err := meta.EachListItem(list, func(object runtime.Object) error {
		see(watch.Event{Type: watch.Added, Object: object})
		return nil
	}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), follower{watching, list, namespace})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watching: %w", err)
	}
	var failure error
	var running sync.WaitGroup
	running.Go(func() {
		for event := range events.ResultChan() {
			if event.Type == watch.Error {
				failure = errors.Join(failure, fmt.Errorf("watching: %v", event.Object))
				continue
			}
			see(event)
		}
		if ctx.Err() == nil {
			failure = errors.Join(failure, errors.New("watching: the watch ended"))
		}
	})
	return func() error {
		cancel()
		running.Wait()
		return failure
	}, nil
}

// follower starts a watch anew.
type follower struct {
	client    client.WithWatch
	list      client.ObjectList
	namespace string
}

func (f follower) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return f.client.Watch(ctx, f.list, client.InNamespace(f.namespace), &client.ListOptions{Raw: &options})
}
