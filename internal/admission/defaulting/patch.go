package defaulting

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// patch returns what turns raw into itself plus the differences between before and after, which are raw as this build understands it, without
// and with defaults. A field that before has and raw lacks is one that only our way of writing spells out; it is no reason for a change.
//
// Defaulting takes nothing away and keeps the length of lists, so that there are only fields to add and fields to replace.
func patch(raw, before, after map[string]any) []jsonpatch.Operation {
	var d differences
	d.maps("", raw, before, after)
	return d
}

type differences []jsonpatch.Operation

func (d *differences) maps(path string, raw, before, after map[string]any) {
	for _, field := range slices.Sorted(maps.Keys(after)) {
		if reflect.DeepEqual(before[field], after[field]) {
			continue
		}
		at := path + "/" + escape(field)
		if value, ok := raw[field]; ok && value != nil {
			d.values(at, value, before[field], after[field])
		} else {
			*d = append(*d, jsonpatch.NewOperation("add", at, after[field]))
		}
	}
}

func (d *differences) values(at string, raw, before, after any) {
	switch raw := raw.(type) {
	case map[string]any:
		before, wasMap := before.(map[string]any)
		after, isMap := after.(map[string]any)
		if wasMap && isMap {
			d.maps(at, raw, before, after)
			return
		}
	case []any:
		before, wasList := before.([]any)
		after, isList := after.([]any)
		if wasList && isList && len(raw) == len(after) && len(before) == len(after) {
			d.lists(at, raw, before, after)
			return
		}
	}
	*d = append(*d, jsonpatch.NewOperation("replace", at, after))
}

func (d *differences) lists(path string, raw, before, after []any) {
	for i := range after {
		if !reflect.DeepEqual(before[i], after[i]) {
			d.values(path+"/"+strconv.Itoa(i), raw[i], before[i], after[i])
		}
	}
}

// escape writes a field name as a step of a JSON pointer.
func escape(field string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(field)
}
