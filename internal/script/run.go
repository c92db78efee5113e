package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// Limits are what one run of a script may use.
type Limits struct {
	// Instructions of the interpreter.
	Instructions int
	// Depth of calls.
	Depth int
	// Bytes of text that it makes, in all.
	Bytes int
	// Time is a bound in case the machine is slow; Instructions end a loop much earlier.
	Time time.Duration
}

// Default are the limits of every script.
func Default() Limits {
	return Limits{Instructions: 1_000_000, Depth: 200, Bytes: 16 << 20, Time: time.Second}
}

// maxSource is the longest script in bytes: as long as a ConfigMap can be.
const maxSource = 1 << 20

// Errors of scripts that use too much.
var (
	ErrInstructions = errors.New("the script runs too many instructions: is there a loop that does not end?")
	ErrBytes        = errors.New("the script makes too much text")
	ErrPattern      = errors.New("the pattern may take too long on so long a text: use fewer repetitions, or a shorter text")
)

// Run runs a script with an input, which it finds in the global variable obj, and returns its first result as JSON: nil, bool, int64,
// float64, string, []any or map[string]any. The input is JSON, too, and is not changed.
func Run(ctx context.Context, source string, input map[string]any, limits Limits) (any, error) {
	limitLists()
	if len(source) > maxSource {
		return nil, fmt.Errorf("the script has %d bytes: it may have %d", len(source), maxSource)
	}
	chunk, err := parse.Parse(strings.NewReader(source), "script")
	if err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	rewriteConcatenations(chunk)
	code, err := lua.Compile(chunk, "script")
	if err != nil {
		return nil, fmt.Errorf("compiling the script: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	counted := &counted{Context: ctx, left: limits.Instructions}
	counted.over, counted.end = context.WithCancel(context.Background())
	defer counted.end()
	state := lua.NewState(lua.Options{
		SkipOpenLibs: true, CallStackSize: limits.Depth, RegistrySize: 1 << 10, RegistryMaxSize: 1 << 16, RegistryGrowStep: 1 << 10,
	})
	defer state.Close()
	r := &run{state: state, left: limits.Bytes, lists: map[*lua.LTable]bool{}}
	r.open()
	state.SetContext(counted)
	value, err := r.toLua(input, 0)
	if err != nil {
		return nil, err
	}
	state.SetGlobal("obj", value)
	err = state.CallByParam(lua.P{Fn: state.NewFunctionFromProto(code), NRet: 1, Protect: true})
	switch {
	case r.failure != nil: // also if the script has caught it
		return nil, r.failure
	case counted.left < 0:
		return nil, ErrInstructions
	case ctx.Err() != nil:
		return nil, fmt.Errorf("running the script for %s: %w", limits.Time, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("running the script: %s", firstLine(err))
	}
	return r.toJSON(state.Get(-1), 0)
}

// limitLists has lists be maps from a certain place on: the interpreter fills a list up to the place that is written, at once. This is a
// variable of the library, and the same for all scripts.
var limitLists = sync.OnceFunc(func() { lua.MaxArrayIndex = 1 << 16 }) //nolint:gochecknoglobals // so is what it sets

// firstLine returns what has gone wrong, without the calls that led there.
func firstLine(err error) string {
	var of *lua.ApiError
	if errors.As(err, &of) && of.Object != nil && of.Object != lua.LNil {
		return of.Object.String()
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// counted is a context that ends after so many instructions: the interpreter asks for Done before each.
type counted struct {
	context.Context
	left int
	over context.Context
	end  context.CancelFunc
}

// Done implements context.Context.
func (c *counted) Done() <-chan struct{} {
	c.left--
	if c.left >= 0 {
		return c.Context.Done()
	}
	c.end()
	return c.over.Done()
}

// Err implements context.Context.
func (c *counted) Err() error {
	if c.left < 0 {
		return ErrInstructions
	}
	return c.Context.Err()
}

// run is one run of a script.
type run struct {
	state *lua.LState
	// left is how many bytes of text it may still make.
	left int
	// failure is the limit that it has come to.
	failure error
	// lists are the tables that were lists in the input or were decoded as such: an empty one would look like an object else.
	lists map[*lua.LTable]bool
}

// charge takes bytes from the budget, and ends the script if there are not as many.
func (r *run) charge(bytes int) {
	if bytes < 0 || bytes > r.left {
		r.fail(ErrBytes)
	}
	r.left -= bytes
}

func (r *run) fail(err error) {
	r.failure = err
	r.state.RaiseError("%s", err.Error())
}
