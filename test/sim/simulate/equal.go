package simulate

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// equal reports what equality.Semantic.DeepEqual reports of two objects of the API, or of parts of them: an empty list is none, and amounts
// and times are equal by what they mean. It is several times faster, because an object refers to nothing twice, and because versions of an
// object share what has not changed.
func equal[T any](a, b *T) bool {
	return sameValue(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
}

// equalObjects is equal for objects of any kind.
func equalObjects(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Type() == y.Type() && sameValue(x.Elem(), y.Elem())
}

func sameValue(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		return sameStruct(a, b)
	case reflect.Slice:
		return sameList(a, b)
	case reflect.Map:
		return sameMap(a, b)
	case reflect.Pointer:
		return a.UnsafePointer() == b.UnsafePointer() || !a.IsNil() && !b.IsNil() && sameValue(a.Elem(), b.Elem())
	case reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return a.Elem().Type() == b.Elem().Type() && sameValue(a.Elem(), b.Elem())
	case reflect.String:
		return a.String() == b.String()
	default:
		return a.Equal(b)
	}
}

func sameStruct(a, b reflect.Value) bool {
	switch a.Type() {
	case reflect.TypeFor[resource.Quantity]():
		x, y := a.Interface().(resource.Quantity), b.Interface().(resource.Quantity)
		return x.Cmp(y) == 0
	case reflect.TypeFor[metav1.Time]():
		return a.Interface().(metav1.Time).Time.Equal(b.Interface().(metav1.Time).Time)
	case reflect.TypeFor[metav1.MicroTime]():
		return a.Interface().(metav1.MicroTime).Time.Equal(b.Interface().(metav1.MicroTime).Time)
	}
	for i := range a.NumField() {
		if !sameValue(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

func sameList(a, b reflect.Value) bool {
	n := a.Len()
	if n != b.Len() {
		return false
	}
	if n == 0 || a.UnsafePointer() == b.UnsafePointer() {
		return true
	}
	for i := range n {
		if !sameValue(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func sameMap(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	if a.Len() == 0 || a.UnsafePointer() == b.UnsafePointer() {
		return true
	}
	for entries := a.MapRange(); entries.Next(); {
		other := b.MapIndex(entries.Key())
		if !other.IsValid() || !sameValue(entries.Value(), other) {
			return false
		}
	}
	return true
}
