package validating

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ratcheted returns what rules find wrong with an object that they did not find wrong with old: an object that was stored before a rule was
// made can be changed elsewhere. CRD schemas ratchet in the same way. old is nil for a new object.
func ratcheted[T any](rules func(*T) field.ErrorList, now, old *T) field.ErrorList {
	errs := rules(now)
	if old == nil || len(errs) == 0 {
		return errs
	}
	known := map[string]bool{}
	for _, err := range rules(old) {
		known[err.Error()] = true
	}
	return slices.DeleteFunc(errs, func(err *field.Error) bool { return known[err.Error()] })
}
