// Package patch writes JSON patches that touch nothing but what a handler changed, so that fields that this build does not know are kept.
//
// A patch goes into objects field by field. A list that differs is replaced as a whole, with all that is known of its items and all that is
// not: API servers apply that faster than one operation for each item.
package patch

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// Between returns what turns raw into itself plus the differences between before and after, which are raw as this build understands it,
// without and with the changes of a handler. A field that before has and raw lacks is one that only our encoding spells out; it is no
// reason for a change.
//
// An item that stays in a list keeps the fields that this build does not know. They are lost only where items can't be told apart.
func Between(raw, before, after map[string]any) []jsonpatch.Operation {
	var d differences
	d.maps("", versions[map[string]any]{raw, before, after})
	return d
}

// versions are those of a value: as it was sent, as this build understands that, and as it is to be.
type versions[T any] struct{ raw, before, after T }

// as returns the versions as those of a type, if all of them are of that type.
func as[T any](v versions[any]) (versions[T], bool) {
	raw, ok1 := v.raw.(T)
	before, ok2 := v.before.(T)
	after, ok3 := v.after.(T)
	return versions[T]{raw, before, after}, ok1 && ok2 && ok3
}

func fieldOf(v versions[map[string]any], name string) versions[any] {
	return versions[any]{v.raw[name], v.before[name], v.after[name]}
}

type differences []jsonpatch.Operation

func (d *differences) add(operation, path string, value any) {
	*d = append(*d, jsonpatch.NewOperation(operation, path, value))
}

func (d *differences) maps(path string, v versions[map[string]any]) {
	for _, name := range slices.Sorted(maps.Keys(v.after)) {
		at, field := path+"/"+Escape(name), fieldOf(v, name)
		fields, areMaps := as[map[string]any](field)
		switch {
		case reflect.DeepEqual(field.before, field.after):
		case field.raw == nil:
			d.add("add", at, field.after)
		case areMaps:
			d.maps(at, fields)
		default:
			d.add("replace", at, overlay(field))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.before)) {
		_, there := v.raw[name]
		if _, kept := v.after[name]; there && !kept {
			d.add("remove", path+"/"+Escape(name), nil)
		}
	}
}

// overlay returns a value as it was sent with the differences between before and after.
func overlay(v versions[any]) any {
	if reflect.DeepEqual(v.before, v.after) {
		return v.raw
	}
	if fields, ok := as[map[string]any](v); ok {
		return overlayFields(fields)
	}
	if items, ok := as[[]any](v); ok && len(items.raw) == len(items.before) {
		return overlayItems(items)
	}
	return v.after
}

func overlayFields(v versions[map[string]any]) map[string]any {
	out := maps.Clone(v.raw)
	for name := range v.after {
		if field := fieldOf(v, name); field.raw != nil {
			out[name] = overlay(field)
		} else if !reflect.DeepEqual(field.before, field.after) {
			out[name] = field.after
		}
	}
	for name := range v.before {
		if _, kept := v.after[name]; !kept {
			delete(out, name)
		}
	}
	return out
}

// overlayItems returns the items of after; those that were there before with all fields that they were sent with. Items are told apart by
// their names; where they have none, by their places as long as the list keeps its length, else by their whole content.
func overlayItems(v versions[[]any]) []any {
	out := slices.Clone(v.after)
	was, is := identities(v.before, nameOf), identities(v.after, nameOf)
	if was == nil || is == nil {
		if len(v.before) == len(v.after) {
			for i := range out {
				out[i] = overlay(versions[any]{v.raw[i], v.before[i], v.after[i]})
			}
			return out
		}
		was, is = identities(v.before, contentOf), identities(v.after, contentOf)
	}
	for identity, place := range is {
		if old, stays := was[identity]; stays {
			out[place] = overlay(versions[any]{v.raw[old], v.before[old], v.after[place]})
		}
	}
	return out
}

// identities returns the places of the items of a list by what tells them apart; nil if two items are the same by that, or one has nothing.
func identities(list []any, identify func(any) string) map[string]int {
	places := make(map[string]int, len(list))
	for i, item := range list {
		identity := identify(item)
		if _, twice := places[identity]; twice || identity == "" {
			return nil
		}
		places[identity] = i
	}
	return places
}

func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

func contentOf(item any) string {
	text, err := json.Marshal(item)
	if err != nil {
		panic(err) // it has been read from JSON
	}
	return string(text)
}

// Known returns what turns the JSON that before was read from into that of after, as Between does, for JSON in which this build knows all
// fields and each is there once. It costs a fraction of that: nothing is looked at but what differs, and nothing is written as JSON but
// what is new.
//
// In such JSON a field is there, and not null, if its value in Go is not the zero value; of one that has the zero value it can't be told,
// so that it is set as a whole. Fields that become empty are taken out.
func Known[T any](before, after *T) []jsonpatch.Operation {
	var d differences
	d.fields("", reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem())
	return d
}

// fields compares two structs of which the first one is there in the JSON.
func (d *differences) fields(path string, before, after reflect.Value) {
	for i := range before.NumField() {
		was, is := before.Field(i), after.Field(i)
		if areSame(was, is) {
			continue
		}
		field := before.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		at := path + "/" + Escape(name)
		switch {
		case name == "" && field.Anonymous:
			d.fields(path, was, is)
		case !isEmpty(was) && !isEmpty(is):
			d.known(at, was, is)
		case !isEmpty(is):
			d.add("add", at, is.Interface())
		case !isEmpty(was):
			d.add("remove", at, nil)
		}
	}
}

func areSame(a, b reflect.Value) bool {
	return a.IsZero() && b.IsZero() || reflect.DeepEqual(a.Interface(), b.Interface())
}

// isEmpty reports whether a field of the value says as much as none.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// known compares two values that differ, of which the first one is there in the JSON.
func (d *differences) known(at string, before, after reflect.Value) {
	if before.Kind() == reflect.Pointer {
		before, after = before.Elem(), after.Elem()
	}
	switch kind := before.Kind(); {
	case reflect.PointerTo(before.Type()).Implements(reflect.TypeFor[json.Marshaler]()):
		d.add("replace", at, after.Interface())
	case kind == reflect.Struct:
		d.fields(at, before, after)
	case kind == reflect.Map && before.Type().Key().Kind() == reflect.String:
		was := entries(before)
		d.maps(at, versions[map[string]any]{was, was, entries(after)})
	default:
		d.add("replace", at, after.Interface())
	}
}

// entries returns a map with strings as its keys.
func entries(m reflect.Value) map[string]any {
	all := make(map[string]any, m.Len())
	for key, value := range m.Seq2() {
		all[key.String()] = value.Interface()
	}
	return all
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
