package observe

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// List reads a list and returns pointers to its items, which must not be changed: a cache does not copy them.
func List[T any](ctx context.Context, r client.Reader, list client.ObjectList, items *[]T, options ...client.ListOption) ([]*T, error) {
	if err := r.List(ctx, list, append(slices.Clip(options), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", reflect.TypeFor[T]().Name(), err)
	}
	out := make([]*T, len(*items))
	for i := range *items {
		out[i] = &(*items)[i]
	}
	return out, nil
}

// Find reads an object into out and returns it; nil if there is none of that name.
func Find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r client.Reader, key types.NamespacedName, out P) (P, error) {
	err := r.Get(ctx, key, out)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", reflect.TypeFor[T]().Name(), key, err)
	}
	return out, nil
}

// Keys returns the names of those objects that a change concerns.
func Keys[T client.Object](objects []T, concerned func(T) bool) []types.NamespacedName {
	var out []types.NamespacedName
	for _, object := range objects {
		if concerned(object) {
			out = append(out, client.ObjectKeyFromObject(object))
		}
	}
	return out
}
