package simulate

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shelf holds the objects of one kind, sorted by namespace and name.
type shelf struct {
	kind    schema.GroupVersionKind
	keys    []Key
	objects []client.Object
	// changes are the places in the history of what happened to them. A cache does not note those.
	changes []int
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// get returns the object of that name, or nil.
func (s *shelf) get(key Key) client.Object {
	if s == nil {
		return nil
	}
	if i, ok := slices.BinarySearchFunc(s.keys, key, compareKeys); ok {
		return s.objects[i]
	}
	return nil
}

// set puts an object in the place of that of its name, or takes that out if the object is nil.
func (s *shelf) set(key Key, object client.Object) {
	i, ok := slices.BinarySearchFunc(s.keys, key, compareKeys)
	switch {
	case ok && object != nil:
		s.objects[i] = object
	case ok:
		s.keys, s.objects = slices.Delete(s.keys, i, i+1), slices.Delete(s.objects, i, i+1)
	case object != nil:
		s.keys, s.objects = slices.Insert(s.keys, i, key), slices.Insert(s.objects, i, object)
	}
}

// all returns the objects as they are now, in a slice of their own.
func (s *shelf) all() []client.Object {
	if s == nil {
		return nil
	}
	return slices.Clone(s.objects)
}

// shelves are those of all kinds, sorted by kind.
type shelves []*shelf

// of returns the shelf of a kind; nil if there never was an object of it.
func (s shelves) of(kind schema.GroupVersionKind) *shelf {
	for _, one := range s {
		if one.kind == kind {
			return one
		}
	}
	return nil
}

// add returns the shelves with one of a kind that has none.
func (s shelves) add(kind schema.GroupVersionKind) (shelves, *shelf) {
	one := &shelf{kind: kind}
	i, _ := slices.BinarySearchFunc(s, kind, func(one *shelf, kind schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(one.kind.Kind, kind.Kind), cmp.Compare(one.kind.String(), kind.String()))
	})
	return slices.Insert(s, i, one), one
}
