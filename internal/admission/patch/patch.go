// Package patch writes JSON patches that touch nothing but what a handler changed, so that what this build does not know of an object is
// kept.
package patch

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// Between returns what turns raw into itself plus the differences between before and after, which are raw as this build understands it,
// without and with the changes of a handler. A field that before has and raw lacks is one that only our way of writing spells out; it is no
// reason for a change.
//
// Items are put into a list and taken out of it where they are: an item that stays is only changed in those of its fields that differ. A
// list whose items change their order, or of which many come or go, is replaced as a whole, with all that raw says of the items that stay.
// Only where items can't be told apart, what is not known of them is lost.
func Between(raw, before, after map[string]any) []jsonpatch.Operation {
	var d differences
	d.maps("", raw, before, after)
	return d
}

type differences []jsonpatch.Operation

func (d *differences) add(operation, path string, value any) {
	*d = append(*d, jsonpatch.NewOperation(operation, path, value))
}

func (d *differences) maps(path string, raw, before, after map[string]any) {
	for _, field := range slices.Sorted(maps.Keys(after)) {
		if reflect.DeepEqual(before[field], after[field]) {
			continue
		}
		at := path + "/" + Escape(field)
		if value, ok := raw[field]; ok && value != nil {
			d.values(at, value, before[field], after[field])
		} else {
			d.add("add", at, after[field])
		}
	}
	for _, field := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[field]; kept {
			continue
		}
		if _, there := raw[field]; there {
			d.add("remove", path+"/"+Escape(field), nil)
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
		if wasList && isList && len(raw) == len(before) && d.lists(at, raw, before, after) {
			return
		}
	}
	d.add("replace", at, after)
}

// mostSingle is the largest number of items that come or go one by one. An API server spends about as much time on each of them as on a
// whole list of moderate length.
const mostSingle = 8

// lists reports whether the items of the list can be told apart, and so the difference be expressed without losing what is not known of
// them.
func (d *differences) lists(path string, raw, before, after []any) bool {
	was, is, ok := identities(before, after)
	if !ok {
		return false
	}
	if !keepsOrder(was, is) || comeOrGo(was, is) > mostSingle {
		d.add("replace", path, overlaidItems(items{raw, before, was}, items{nil, after, is}))
		return true
	}
	d.walk(path, was, is, walked{
		item: func(place int) any { return after[place] },
		changed: func(at string, old, place int) {
			if !reflect.DeepEqual(before[old], after[place]) {
				d.values(at, raw[old], before[old], after[place])
			}
		},
	})
	return true
}

// walked is what is done on the way through two versions of a list: item returns what comes at a place, changed looks at an item that
// stays.
type walked struct {
	item    func(place int) any
	changed func(at string, old, place int)
}

// walk goes through two versions of a list, given by what tells their items apart, in which what stays comes in the same order.
func (d *differences) walk(path string, was, is []string, with walked) {
	stays := make(map[string]bool, len(is))
	for _, identity := range is {
		stays[identity] = true
	}
	// What was there is at the place next to what has been dealt with: whatever is put in or taken out moves it along.
	old := 0
	for place := range is {
		at := path + "/" + strconv.Itoa(place)
		for old < len(was) && !stays[was[old]] {
			d.add("remove", at, nil)
			old++
		}
		if old == len(was) || was[old] != is[place] {
			d.add("add", at, with.item(place))
			continue
		}
		with.changed(at, old, place)
		old++
	}
	for ; old < len(was); old++ {
		d.add("remove", path+"/"+strconv.Itoa(len(is)), nil)
	}
}

// items are those of a version of a list, as this build understands it: each with what tells it apart, and with itself as it came.
type items struct {
	raw, known []any
	identities []string
}

// overlaidItems returns the items of after, those that were there before with all that came with them.
func overlaidItems(before, after items) []any {
	place := make(map[string]int, len(before.identities))
	for i, identity := range before.identities {
		place[identity] = i
	}
	out := slices.Clone(after.known)
	for i, identity := range after.identities {
		if old, stays := place[identity]; stays {
			out[i] = overlaid(before.raw[old], before.known[old], after.known[i])
		}
	}
	return out
}

// overlaid returns raw with the differences between before and after.
func overlaid(raw, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return raw
	}
	switch raw := raw.(type) {
	case map[string]any:
		before, wasMap := before.(map[string]any)
		after, isMap := after.(map[string]any)
		if wasMap && isMap {
			return overlaidFields(raw, before, after)
		}
	case []any:
		before, wasList := before.([]any)
		after, isList := after.([]any)
		if wasList && isList && len(raw) == len(before) {
			if was, is, ok := identities(before, after); ok {
				return overlaidItems(items{raw, before, was}, items{nil, after, is})
			}
		}
	}
	return after
}

func overlaidFields(raw, before, after map[string]any) map[string]any {
	out := maps.Clone(raw)
	for field, value := range after {
		if old, there := raw[field]; there && old != nil {
			out[field] = overlaid(old, before[field], value)
		} else if !reflect.DeepEqual(before[field], value) {
			out[field] = value
		}
	}
	for field := range before {
		if _, kept := after[field]; !kept {
			delete(out, field)
		}
	}
	return out
}

// comeOrGo counts what is in one list and not in the other.
func comeOrGo(was, is []string) int {
	there := make(map[string]bool, len(was))
	for _, identity := range was {
		there[identity] = true
	}
	stay := 0
	for _, identity := range is {
		if there[identity] {
			stay++
		}
	}
	return len(was) + len(is) - 2*stay
}

// identities returns what tells the items of two versions of a list apart: their names; where they have none, their places as long as the
// list keeps its length, else the whole of them. It reports whether no two items of a version are the same by that.
func identities(before, after []any) (was, is []string, ok bool) {
	for _, identify := range []func([]any) ([]string, bool){byName, byPlaceAmong(len(before), len(after)), byContent} {
		var okBefore, okAfter bool
		was, okBefore = identify(before)
		is, okAfter = identify(after)
		if okBefore && okAfter {
			return was, is, true
		}
	}
	return nil, nil, false
}

func byName(list []any) ([]string, bool) {
	names := make([]string, 0, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		if name == "" {
			return nil, false
		}
		names = append(names, name)
	}
	return names, areUnique(names)
}

func byPlaceAmong(before, after int) func([]any) ([]string, bool) {
	return func(list []any) ([]string, bool) { return places(len(list)), before == after }
}

// places returns what tells the items of a list of a length apart where nothing but their places does.
func places(length int) []string {
	all := make([]string, 0, length)
	for i := range length {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func byContent(list []any) ([]string, bool) {
	contents := make([]string, 0, len(list))
	for _, item := range list {
		text, err := json.Marshal(item)
		if err != nil {
			return nil, false
		}
		contents = append(contents, string(text))
	}
	return contents, areUnique(contents)
}

func areUnique(all []string) bool {
	seen := make(map[string]bool, len(all))
	for _, one := range all {
		if seen[one] {
			return false
		}
		seen[one] = true
	}
	return true
}

// keepsOrder reports whether what is in both lists comes in the same order in both.
func keepsOrder(was, is []string) bool {
	place := make(map[string]int, len(was))
	for i, identity := range was {
		place[identity] = i
	}
	last := -1
	for _, identity := range is {
		if i, ok := place[identity]; ok {
			if i < last {
				return false
			}
			last = i
		}
	}
	return true
}

// Escape writes a field name as a step of a JSON pointer.
func Escape(field string) string {
	if !strings.ContainsAny(field, "~/") {
		return field
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(field)
}

// Encode writes operations as JSON. An operation's own way of writing itself has all of it written, read and copied twice.
func Encode(operations []jsonpatch.Operation) ([]byte, error) {
	// The type without its methods; only what adds or replaces has a value, which is never null.
	type plain jsonpatch.Operation
	all := make([]plain, 0, len(operations))
	for _, operation := range operations {
		all = append(all, plain(operation))
	}
	return json.Marshal(all)
}
