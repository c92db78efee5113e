package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Follow calls see for every object of a namespace that list can hold, first as added and then with every event since, one at a time: a
// watch that the API server ends, as it does when it is busy, goes on where it was. Where it cannot, as after a change of the
// CustomResourceDefinition, all is listed anew. The returned function stops it and says what, if anything, was missed.
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
	f := &follower{client: watching, list: list, namespace: namespace, see: see, last: map[client.ObjectKey]client.Object{}}
	if err := f.relist(ctx); err != nil {
		return nil, err
	}
	f.missed = nil // all is new at first
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := f.follow(ctx); err != nil && ctx.Err() == nil {
				f.missed = errors.Join(f.missed, err)
				return
			}
		}
	})
	return func() error {
		cancel()
		running.Wait()
		return f.missed
	}, nil
}

// follower follows the objects of a list.
type follower struct {
	client    client.WithWatch
	list      client.ObjectList
	namespace string
	see       func(watch.Event)
	// last are the objects as they were seen last.
	last map[client.ObjectKey]client.Object
	// missed says which events may have been missed.
	missed error
}

// WatchWithContext starts a watch anew.
func (f *follower) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return f.client.Watch(ctx, f.list, client.InNamespace(f.namespace), &client.ListOptions{Raw: &options})
}

// follow watches until the API server does not know any more what came next, and lists anew then.
func (f *follower) follow(ctx context.Context) error {
	events, err := watchtools.NewRetryWatcherWithContext(ctx, f.list.GetResourceVersion(), f)
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	for event := range events.ResultChan() {
		if event.Type != watch.Error {
			f.tell(event.Type, event.Object.(client.Object))
			continue
		}
		err := apierrors.FromObject(event.Object)
		if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code == http.StatusGone {
			return f.relist(ctx)
		}
		return fmt.Errorf("watching: %w", err)
	}
	return errors.New("watching: the watch ended")
}

// relist tells of what has changed since the last event, and notes that there may have been more.
func (f *follower) relist(ctx context.Context) error {
	if err := f.client.List(ctx, f.list, client.InNamespace(f.namespace)); err != nil {
		return fmt.Errorf("listing what to follow: %w", err)
	}
	there := map[client.ObjectKey]bool{}
	if err := meta.EachListItem(f.list, func(item runtime.Object) error {
		object := item.DeepCopyObject().(client.Object) // the list is used again
		key := client.ObjectKeyFromObject(object)
		there[key] = true
		event, before := watch.Added, f.last[key]
		switch {
		case before != nil && before.GetResourceVersion() == object.GetResourceVersion():
			return nil
		case before != nil:
			event = watch.Modified
		}
		f.missed = errors.Join(f.missed, fmt.Errorf("versions of %s before %s may have been missed", key, object.GetResourceVersion()))
		f.tell(event, object)
		return nil
	}); err != nil {
		return err
	}
	for key, object := range f.last {
		if !there[key] {
			f.missed = errors.Join(f.missed, fmt.Errorf("versions of %s after %s may have been missed", key, object.GetResourceVersion()))
			f.tell(watch.Deleted, object)
		}
	}
	return nil
}

func (f *follower) tell(event watch.EventType, object client.Object) {
	switch key := client.ObjectKeyFromObject(object); event {
	case watch.Deleted:
		delete(f.last, key)
	case watch.Added, watch.Modified:
		f.last[key] = object
	}
	f.see(watch.Event{Type: event, Object: object})
}
