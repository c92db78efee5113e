package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pollInterval is how often an object is read that can't be watched, or whose watch has ended.
const pollInterval = 2 * time.Second

// ErrGone means that an object that is followed was deleted.
var ErrGone = errors.New("it was deleted")

// Follow calls seen with an object and each newer version of it, until seen returns false, the object is gone, or the context ends. Who may
// not watch reads again and again.
func (c *Cluster) Follow(ctx context.Context, o Object, seen func(Object) bool) error {
	for {
		if !seen(o) {
			return nil
		}
		next, goOn, err := c.watchOnce(ctx, o, seen)
		if err != nil || !goOn {
			return err
		}
		if o, err = c.reread(ctx, next); err != nil {
			return err
		}
	}
}

// reread reads an object again after a while.
func (c *Cluster) reread(ctx context.Context, o Object) (Object, error) {
	select {
	case <-ctx.Done():
		return Object{}, ctx.Err()
	case <-time.After(pollInterval):
	}
	now, err := c.Again(ctx, o)
	if apierrors.IsNotFound(err) || err == nil && now.GetUID() != o.GetUID() {
		return Object{}, fmt.Errorf("%s: %w", o, ErrGone)
	}
	return now, err
}

// watchOnce follows an object with one watch; goOn says that it ended, or could not begin, before seen was satisfied.
func (c *Cluster) watchOnce(ctx context.Context, o Object, seen func(Object) bool) (last Object, goOn bool, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(o.served.WithKind(o.Kind.GroupVersionKind.Kind + "List"))
	options := &client.ListOptions{
		Namespace: o.GetNamespace(), FieldSelector: fields.OneTermEqualSelector("metadata.name", o.GetName()),
	}
	w, err := c.client.Watch(ctx, list, options)
	if err != nil {
		return o, true, ctx.Err() // it can still be read, or tells then why not
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		read, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Deleted:
			return o, false, fmt.Errorf("%s: %w", o, ErrGone)
		case !ok || event.Type != watch.Added && event.Type != watch.Modified:
			return o, true, nil
		}
		next, err := toHub(o.Kind, o.served, read)
		if err != nil {
			return o, false, err
		}
		if next.GetUID() != o.GetUID() {
			return o, false, fmt.Errorf("%s: %w", o, ErrGone)
		}
		if o = next; !seen(o) {
			return o, false, nil
		}
	}
	return o, true, ctx.Err()
}
