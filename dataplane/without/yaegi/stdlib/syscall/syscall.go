// Package syscall has no symbols.
package syscall

import "reflect"

// Symbols are none.
var Symbols map[string]map[string]reflect.Value
