package script

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// concatenation is the name of the function that stands in for "..". No script can write it.
const concatenation = "(concatenation)"

// rewriteConcatenations has a script call a function for each "..", because nothing else limits how long a text gets: 30 doublings of one
// byte are a gigabyte.
func rewriteConcatenations(chunk []ast.Stmt) {
	for _, statement := range chunk {
		rewrite(reflect.ValueOf(statement))
	}
}

// rewrite changes the expressions below a node of the syntax tree.
func rewrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		rewrite(v.Elem())
		if of, is := v.Interface().(*ast.StringConcatOpExpr); is {
			call := &ast.FuncCallExpr{Func: &ast.IdentExpr{Value: concatenation}, Args: []ast.Expr{of.Lhs, of.Rhs}, AdjustRet: true}
			for _, node := range []ast.PositionHolder{call, call.Func} {
				node.SetLine(of.Line())
				node.SetLastLine(of.LastLine())
			}
			v.Set(reflect.ValueOf(call))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			rewrite(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				rewrite(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			rewrite(v.Index(i))
		}
	}
}

// concatenate is "..", within the budget.
func (r *run) concatenate(state *lua.LState) int {
	a, b := state.Get(1), state.Get(2)
	for _, v := range []lua.LValue{a, b} {
		if !lua.LVCanConvToString(v) {
			state.RaiseError("attempt to concatenate a %s value", v.Type().String())
		}
	}
	left, right := lua.LVAsString(a), lua.LVAsString(b)
	r.charge(len(left) + len(right))
	state.Push(lua.LString(left + right))
	return 1
}
