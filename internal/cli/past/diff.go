package past

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// Difference is a field that differs between two templates.
type Difference struct {
	// Path is the field as a JSON pointer within the template; items of lists that have names are given by these.
	Path string `json:"path"`
	// Old and New are its values; nil where there is none.
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
}

// Diff returns the fields in which two templates differ, in the order of their paths.
func Diff(old, updated map[string]any) []Difference {
	var out []Difference
	compare("", old, updated, &out)
	return out
}

func compare(path string, old, updated any, out *[]Difference) {
	if reflect.DeepEqual(old, updated) {
		return
	}
	was, wasFields := fieldsOf(old)
	is, isFields := fieldsOf(updated)
	if !wasFields || !isFields {
		*out = append(*out, Difference{path, old, updated})
		return
	}
	before := len(*out)
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		compare(path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), was[name], is[name], out)
	}
	if len(*out) == before { // the same items in another order
		*out = append(*out, Difference{path, order(old), order(updated)})
	}
}

// fieldsOf returns the fields of an object, or the items of a list whose items all have names, by these.
func fieldsOf(value any) (map[string]any, bool) {
	switch value := value.(type) {
	case map[string]any:
		return value, true
	case []any:
		items := map[string]any{}
		for _, item := range value {
			fields, ok := item.(map[string]any)
			name, named := fields["name"].(string)
			if _, twice := items[name]; !ok || !named || twice {
				return nil, false
			}
			items[name] = item
		}
		return items, len(value) > 0
	}
	return nil, false
}

// order returns the names of the items of a list.
func order(value any) any {
	items, ok := value.([]any)
	if !ok {
		return value
	}
	names := make([]any, 0, len(items))
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			names = append(names, fields["name"])
		}
	}
	return names
}

// HowItGoes says whether a Pod goes from one revision to another in place, by the rule that the controllers go by; empty for templates that
// are not stored as ControllerRevisions.
func HowItGoes(from, to Entry, o inplace.Options) (inPlace bool, why string) {
	if from.Stored == nil || to.Stored == nil {
		return false, ""
	}
	change, refusal := inplace.Diff(from.Stored, to.Stored, o)
	switch {
	case refusal != nil:
		return false, refusal.Error()
	case !change.TouchesContainers():
		return true, "no container restarts: " + change.String()
	}
	return true, change.String()
}

// Text writes a value in one line.
func Text(value any) string {
	switch value := value.(type) {
	case nil:
		return "(none)"
	case string:
		return value
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, name+": "+Text(value[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		var parts []string
		for _, item := range value {
			parts = append(parts, Text(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(value)
}
