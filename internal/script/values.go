package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	lua "github.com/yuin/gopher-lua"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// bytesOfValue is what each value of a result costs of the budget.
const bytesOfValue = 16

// maxNesting is how deep values may be nested.
const maxNesting = 64

// toLua returns a value of JSON as Lua has it. The order of the keys is always the same.
func (r *run) toLua(value any, depth int) (lua.LValue, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("the value is nested deeper than %d", maxNesting)
	}
	switch v := value.(type) {
	case nil:
		return lua.LNil, nil
	case bool:
		return lua.LBool(v), nil
	case string:
		return lua.LString(v), nil
	case int64:
		return lua.LNumber(v), nil
	case int:
		return lua.LNumber(v), nil
	case float64:
		return lua.LNumber(v), nil
	case []any:
		table := r.state.CreateTable(len(v), 0)
		r.lists[table] = true
		for i := range v {
			item, err := r.toLua(v[i], depth+1)
			if err != nil {
				return nil, err
			}
			table.RawSetInt(i+1, item)
		}
		return table, nil
	case map[string]any:
		table := r.state.CreateTable(0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			item, err := r.toLua(v[key], depth+1)
			if err != nil {
				return nil, err
			}
			table.RawSetString(key, item)
		}
		return table, nil
	}
	return nil, fmt.Errorf("a %T is no value of JSON", value)
}

// toJSON returns a value of Lua as JSON. A table is a list if its keys are 1 to n, or if it is empty and was a list.
func (r *run) toJSON(value lua.LValue, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("the result is nested deeper than %d, or holds itself", maxNesting)
	}
	if r.left -= bytesOfValue; r.left < 0 { // tables that hold one table many times, and that one another
		return nil, ErrBytes
	}
	switch v := value.(type) {
	case *lua.LNilType:
		return nil, nil
	case lua.LBool:
		return bool(v), nil
	case lua.LString:
		return string(v), nil
	case lua.LNumber:
		n := float64(v)
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, fmt.Errorf("the result holds %v, which JSON can't say", n)
		}
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n), nil
		}
		return n, nil
	case *lua.LTable:
		return r.tableToJSON(v, depth)
	}
	return nil, fmt.Errorf("the result holds a %s, which JSON can't say", value.Type())
}

func (r *run) tableToJSON(table *lua.LTable, depth int) (any, error) {
	fields, items := map[string]any{}, map[int]any{}
	var failure error
	table.ForEach(func(key, item lua.LValue) {
		if failure != nil {
			return
		}
		converted, err := r.toJSON(item, depth+1)
		switch name := key.(type) {
		case lua.LString:
			fields[string(name)] = converted
		case lua.LNumber:
			items[int(name)] = converted
		default:
			err = fmt.Errorf("the result holds a key that is a %s", key.Type())
		}
		failure = err
	})
	switch {
	case failure != nil:
		return nil, failure
	case len(items) == 0 && (len(fields) > 0 || !r.lists[table]):
		return fields, nil
	}
	list := make([]any, len(items))
	for i := range list {
		item, is := items[i+1]
		if !is || len(fields) > 0 {
			return nil, fmt.Errorf("the result holds a table that is neither a list nor an object")
		}
		list[i] = item
	}
	return list, nil
}

// openJSON gives a script the functions json.encode and json.decode.
func (r *run) openJSON() {
	table := r.state.NewTable()
	table.RawSetString("encode", r.state.NewFunction(func(state *lua.LState) int {
		value, err := r.toJSON(state.CheckAny(1), 0)
		if err != nil {
			state.RaiseError("%s", err.Error())
		}
		text, err := json.Marshal(value)
		if err != nil {
			state.RaiseError("%s", err.Error())
		}
		r.charge(len(text))
		state.Push(lua.LString(text))
		return 1
	}))
	table.RawSetString("decode", r.state.NewFunction(func(state *lua.LState) int {
		text := state.CheckString(1)
		r.charge(len(text))
		var value any
		if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
			state.RaiseError("%s", err.Error())
		}
		decoded, err := r.toLua(value, 0)
		if err != nil {
			state.RaiseError("%s", err.Error())
		}
		state.Push(decoded)
		return 1
	}))
	r.state.SetGlobal("json", table)
}
