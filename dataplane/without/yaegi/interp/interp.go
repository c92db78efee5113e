// Package interp has an interpreter of plugins that interprets none.
package interp

import (
	"errors"
	"io"
	"reflect"
)

var errLeftOut = errors.New("this build interprets no plugins")

// Exports are the symbols of packages.
type Exports map[string]map[string]reflect.Value

// Options are those of an interpreter.
type Options struct {
	GoPath         string
	Env            []string
	Stdout, Stderr io.Writer
}

// Interpreter does nothing.
type Interpreter struct{}

// New returns an interpreter.
func New(Options) *Interpreter { return &Interpreter{} }

// Use returns an error.
func (*Interpreter) Use(Exports) error { return errLeftOut }

// Eval returns an error.
func (*Interpreter) Eval(string) (reflect.Value, error) { return reflect.Value{}, errLeftOut }
