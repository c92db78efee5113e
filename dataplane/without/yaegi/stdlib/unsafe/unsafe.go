// Package unsafe has no symbols.
package unsafe

import "reflect"

// Symbols are none.
var Symbols map[string]map[string]reflect.Value
