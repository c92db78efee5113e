// Package request reads the objects of admission requests. It keeps each as it came beside what this build understands of it, and refuses
// what would do harm to read.
package request

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Parse returns an object as it came, without having looked at its meaning.
func Parse(from runtime.RawExtension) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(from.Raw); err != nil {
		return nil, err
	}
	if err := refuseTinyQuantities("", u.Object); err != nil {
		return nil, err
	}
	return u, nil
}

// Decode returns what this build understands of an object.
func Decode[T any](u *unstructured.Unstructured) (*T, error) {
	into := new(T)
	return into, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// immense matches a decimal exponent of more than two digits; a quantity can't be larger than 2^63 or finer than a billionth.
var immense = regexp.MustCompile(`[eE][+-]?0*[1-9]\d{2,}$`)

// refuseTinyQuantities protects the manager from quantities such as "1e-99999999": to read one, the quantity's own parser computes ten to
// that power, which takes minutes. The API server does not read the quantities of a template, so that it is up to us.
func refuseTinyQuantities(path string, value any) error {
	switch value := value.(type) {
	case []any:
		for i := range value {
			if err := refuseTinyQuantities(fmt.Sprintf("%s[%d]", path, i), value[i]); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(value)) {
			at := path + "." + field
			if err := refuseTinyQuantity(at, field, value[field]); err != nil {
				return err
			}
			if err := refuseTinyQuantities(at, value[field]); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuseTinyQuantity looks at the fields of Pod and claim templates that hold quantities, alone or by name.
func refuseTinyQuantity(path, field string, value any) error {
	quantities := map[string]any{}
	switch field {
	case "sizeLimit", "divisor":
		quantities[""] = value
	case "limits", "requests", "overhead", "capacity", "allocatedResources":
		quantities, _ = value.(map[string]any)
	}
	for name, quantity := range quantities {
		text, _ := quantity.(string)
		if immense.MatchString(text) {
			return fmt.Errorf("%s %s: quantity %.40q is out of range: use a multiple of 1n up to 2^63", path[1:], name, text)
		}
	}
	return nil
}
