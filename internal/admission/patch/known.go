package patch

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

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
	case kind == reflect.Struct:
		d.fields(at, before, after)
		return
	case kind == reflect.Map && before.Type().Key().Kind() == reflect.String:
		d.entries(at, before, after)
		return
	case kind == reflect.Slice && before.Type().Elem().Kind() == reflect.Struct:
		if d.knownList(at, before, after) {
			return
		}
	}
	d.add("replace", at, after.Interface())
}

func (d *differences) entries(path string, before, after reflect.Value) {
	was, is := entriesOf(before), entriesOf(after)
	for _, key := range slices.Sorted(maps.Keys(is)) {
		at := path + "/" + Escape(key)
		if old, there := was[key]; !there {
			d.add("add", at, is[key].Interface())
		} else if !areSame(old, is[key]) {
			d.add("replace", at, is[key].Interface())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, kept := is[key]; !kept {
			d.add("remove", path+"/"+Escape(key), nil)
		}
	}
}

func entriesOf(m reflect.Value) map[string]reflect.Value {
	all := make(map[string]reflect.Value, m.Len())
	for key, value := range m.Seq2() {
		all[key.String()] = value
	}
	return all
}

// knownList reports whether the items of the list can be told apart.
func (d *differences) knownList(path string, before, after reflect.Value) bool {
	was, okBefore := namesIn(before)
	is, okAfter := namesIn(after)
	switch {
	case okBefore && okAfter:
	case before.Len() == after.Len():
		was, is = places(before.Len()), places(after.Len())
	default:
		return false
	}
	if !keepsOrder(was, is) || comeOrGo(was, is) > mostSingle {
		return false
	}
	d.walk(path, was, is, walked{
		item: func(place int) any { return after.Index(place).Interface() },
		changed: func(at string, old, place int) {
			was, is := before.Index(old), after.Index(place)
			switch {
			case areSame(was, is):
			case was.IsZero():
				d.add("replace", at, is.Interface()) // it may be null
			default:
				d.known(at, was, is)
			}
		},
	})
	return true
}

// namesIn returns the names of the items of a list, and reports whether they tell them apart.
func namesIn(list reflect.Value) ([]string, bool) {
	field, ok := list.Type().Elem().FieldByName("Name")
	if !ok || field.Type.Kind() != reflect.String {
		return nil, false
	}
	names := make([]string, 0, list.Len())
	for i := range list.Len() {
		name := list.Index(i).FieldByIndex(field.Index).String()
		if name == "" {
			return nil, false
		}
		names = append(names, name)
	}
	return names, areUnique(names)
}
