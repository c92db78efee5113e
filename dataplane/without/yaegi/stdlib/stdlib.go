// Package stdlib has no symbols.
package stdlib

import "reflect"

// Symbols are none.
var Symbols map[string]map[string]reflect.Value
