package script

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// open gives a script its libraries. What reads files, loads code, prints, or is not the same each time is left out.
func (r *run) open() {
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.StringLibName: lua.OpenString, lua.TabLibName: lua.OpenTable, lua.MathLibName: lua.OpenMath,
	} {
		r.state.Push(r.state.NewFunction(open))
		r.state.Push(lua.LString(name))
		r.state.Call(1, 0)
	}
	for _, name := range []string{
		"collectgarbage", "dofile", "getfenv", "setfenv", "load", "loadfile", "loadstring", "module", "require", "newproxy", "print",
		"_printregs", "_GOPHER_LUA_VERSION",
	} {
		r.state.SetGlobal(name, lua.LNil)
	}
	r.without(lua.MathLibName, "random", "randomseed")
	r.without(lua.StringLibName, "dump")
	r.state.SetGlobal(concatenation, r.state.NewFunction(r.concatenate))
	r.limitStrings()
	r.wrap(lua.TabLibName, "concat", r.beforeTableConcat)
	r.openJSON()
}

func (r *run) library(name string) *lua.LTable {
	table, _ := r.state.GetGlobal(name).(*lua.LTable)
	return table
}

func (r *run) without(library string, names ...string) {
	for _, name := range names {
		r.library(library).RawSetString(name, lua.LNil)
	}
}

// wrap has a function of a library ask first, and pay for the text that it returns.
func (r *run) wrap(library, name string, before func(*lua.LState)) {
	table := r.library(library)
	inner, is := table.RawGetString(name).(*lua.LFunction)
	if !is || !inner.IsG {
		return
	}
	upvalues := make([]lua.LValue, len(inner.Upvalues))
	for i := range upvalues {
		upvalues[i] = inner.Upvalues[i].Value()
	}
	table.RawSetString(name, r.state.NewClosure(func(state *lua.LState) int {
		before(state)
		n := inner.GFunction(state)
		for i := range n {
			if text, is := state.Get(-1 - i).(lua.LString); is {
				r.charge(len(text))
			}
		}
		return n
	}, upvalues...))
}

// limitStrings has the functions of strings keep to the budget.
func (r *run) limitStrings() {
	free := func(*lua.LState) {}
	pattern := func(state *lua.LState) { r.checkPattern(state.CheckString(1), state.CheckString(2)) }
	for name, before := range map[string]func(*lua.LState){
		"byte": free, "char": free, "len": free, "lower": free, "reverse": free, "sub": free, "upper": free,
		"find": pattern, "match": pattern, "gmatch": pattern, "gfind": pattern,
		"rep": func(state *lua.LState) {
			text, times := len(state.CheckString(1)), state.CheckInt(2)
			if times > 0 && text > 0 && times > r.left/text {
				r.fail(ErrBytes)
			}
		},
		"format": r.beforeFormat, "gsub": r.beforeGsub,
	} {
		r.wrap(lua.StringLibName, name, before)
	}
}

var (
	widths      = regexp.MustCompile(`\d+`)
	repetitions = regexp.MustCompile(`[*+?-]`)
)

// maxWidth is the widest field that string.format may write.
const maxWidth = 1000

func (r *run) beforeFormat(state *lua.LState) {
	format := state.CheckString(1)
	for _, digits := range widths.FindAllString(format, -1) {
		if width, err := strconv.Atoi(digits); strings.Contains(format, "%") && (err != nil || width > maxWidth) {
			r.fail(ErrBytes)
		}
	}
	bytes := len(format) * maxWidth
	for i := 2; i <= state.GetTop(); i++ {
		bytes += 2 * len(state.Get(i).String()) // one that is quoted is longer
	}
	if bytes > r.left {
		r.fail(ErrBytes)
	}
}

// maxMatching bounds the steps of matching a pattern: about a second.
const maxMatching = 1e8

// checkPattern ends the script if a pattern may take too long: each repetition may try every place of the text.
func (r *run) checkPattern(text, pattern string) {
	n := len(repetitions.FindAllString(pattern, -1)) + 1 // it is tried at every place, too
	if n > 2 && math.Pow(float64(len(text)+1), float64(n)) > maxMatching {
		r.fail(ErrPattern)
	}
}

func (r *run) beforeGsub(state *lua.LState) {
	text := state.CheckString(1)
	r.checkPattern(text, state.CheckString(2))
	switch by := state.Get(3).(type) {
	case lua.LString: // %0 to %9 repeat what was matched
		if (len(text)+1)*(len(by)+strings.Count(string(by), "%")*len(text))+len(text) > r.left {
			r.fail(ErrBytes)
		}
	case *lua.LTable:
		state.Replace(3, r.state.NewFunction(func(state *lua.LState) int {
			value := state.GetTable(by, state.Get(1))
			r.charge(len(value.String()))
			state.Push(value)
			return 1
		}))
	case *lua.LFunction:
		state.Replace(3, r.state.NewFunction(func(state *lua.LState) int {
			arguments := state.GetTop()
			state.Insert(by, 1)
			state.Call(arguments, 1)
			r.charge(len(state.Get(-1).String()))
			return 1
		}))
	}
}

func (r *run) beforeTableConcat(state *lua.LState) {
	table, separator := state.CheckTable(1), len(state.OptString(2, ""))
	bytes := 0
	for i := 1; i <= table.Len(); i++ {
		if bytes += len(lua.LVAsString(table.RawGetInt(i))) + separator; bytes > r.left {
			r.fail(ErrBytes)
		}
	}
}
