package script

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestScripts(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		input  map[string]any
		want   any
	}{
		"a value comes back as it was": {"return obj", map[string]any{
			"whole": int64(7), "part": 0.5, "text": "x", "yes": true, "list": []any{int64(1), map[string]any{"a": []any{}}}, "none": map[string]any{},
		}, map[string]any{
			"whole": int64(7), "part": 0.5, "text": "x", "yes": true, "list": []any{int64(1), map[string]any{"a": []any{}}}, "none": map[string]any{},
		}},
		"texts are put together, as operator, method and function": {
			`local a = "x" .. 1 .. obj.b; return a .. ("-"):rep(3) .. string.format("%02d", 7) .. table.concat({"p", "q"}, ",")`,
			map[string]any{"b": "y"}, "x1y---07p,q"},
		"patterns": {
			`local out = {}; for k, v in string.gmatch("a=1,b=2", "(%w+)=(%w+)") do out[k] = v end; out.c = string.gsub("hello", "l", "L"); return out`,
			nil, map[string]any{"a": "1", "b": "2", "c": "heLLo"}},
		"replacing by a table and by a function": {
			`return string.gsub("a b", "%w", {a = "x"}) .. string.gsub("a b", "%w", function(c) return c .. c end)`, nil, "x baa bb"},
		"JSON": {`return json.decode(json.encode({a = {1, 2}, b = json.decode("[]")}))`, nil, map[string]any{"a": []any{int64(1), int64(2)}, "b": []any{}}},
		"keys come in one order": {
			`local out = ""; for k in pairs(obj) do out = out .. k end; return out`, map[string]any{"c": "", "a": "", "b": ""}, "abc"},
		"nothing":                 {`local a = 1`, nil, nil},
		"an error that is caught": {`local ok = pcall(error, "x"); return ok`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				got, err := Run(t.Context(), tc.source, tc.input, Default())
				if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
					t.Fatalf("%v (-want +got):\n%s", err, diff)
				}
			}
		})
	}
}

// TestLimits holds scripts to what they may use. Each has to end soon, and to say why.
func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		is     error
		says   string
	}{
		"a loop without end":                  {"while true do end", ErrInstructions, ""},
		"a loop without end that catches all": {"while true do pcall(function() while true do end end) end", ErrInstructions, ""},
		"recursion without end":               {"local function f() return 1 + f() end; return f()", nil, "stack overflow"},
		"a coroutine":                         {"return coroutine.create(function() end)", nil, "create"},
		"text that doubles":                   {`local s = "x"; while true do s = s .. s end`, ErrBytes, ""},
		"text that doubles and is caught":     {`local s = "x"; pcall(function() while true do s = s .. s end end); return 1`, ErrBytes, ""},
		"a long repetition":                   {`return ("x"):rep(1000000000)`, ErrBytes, ""},
		"an overflowing repetition":           {`return ("xx"):rep(1e15)`, ErrBytes, ""},
		"a wide format":                       {`return string.format("%999999999d", 1)`, ErrBytes, ""},
		"a long replacement":                  {`return string.gsub(("x"):rep(100000), "x", ("y"):rep(100000))`, ErrBytes, ""},
		"a replacement by a function":         {`local y = ("y"):rep(100000); return string.gsub(("x"):rep(100000), "x", function() return y end)`, ErrBytes, ""},
		"a long join":                         {`local t, x = {}, ("x"):rep(1000000); for i = 1, 1000 do t[i] = x end; return table.concat(t)`, ErrBytes, ""},
		"many copies":                         {`local t, x = {}, ("x"):rep(1000000); for i = 1, 1000 do t[i] = x:upper() end; return 1`, ErrBytes, ""},
		"a pattern that backtracks":           {`return string.find(("a"):rep(60), ("a*"):rep(30) .. "b")`, ErrPattern, ""},
		"a result that holds itself":          {`local t = {}; t.t = t; return t`, nil, "holds itself"},
		"a result that holds one thing often": {`local t = {}; for i = 1, 60 do t = {t, t} end; return t`, ErrBytes, ""},
		"a result that is a function":         {`return print or function() end`, nil, "JSON can't say"},
		"a result that is no number":          {`return 0/0`, nil, "JSON can't say"},
		"a result that is half a list":        {`return {1, 2, a = 3}`, nil, "neither a list nor an object"},
		"an error":                            {`error("no such field")`, nil, "no such field"},
		"no Lua":                              {`return return`, nil, "reading the script"},
		"a long script":                       {strings.Repeat(" ", maxSource+1), nil, "it may have"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got, err := Run(t.Context(), tc.source, nil, Default())
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("answered %v, %v, want %v %s", got, err, tc.is, tc.says)
			}
		})
	}
}

// TestAFarItemCostsNothing: the interpreter would fill the list up to it.
func TestAFarItemCostsNothing(t *testing.T) {
	began := time.Now()
	if _, err := Run(t.Context(), `local t = {}; for i = 1, 100 do t[60000000 + i] = 1 end; return 1`, nil, Default()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestTimeIsLimited ends a script in the middle of what takes long.
func TestTimeIsLimited(t *testing.T) {
	limits := Default()
	limits.Time, limits.Instructions = 20*time.Millisecond, 1<<40
	if _, err := Run(t.Context(), "while true do end", nil, limits); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("answered %v", err)
	}
}

// TestWhatIsAbsent reads the world, loads code, or differs from run to run.
func TestWhatIsAbsent(t *testing.T) {
	for _, name := range []string{
		"io", "os", "package", "debug", "coroutine", "channel", "require", "module", "dofile", "load", "loadfile", "loadstring", "getfenv",
		"setfenv", "print", "collectgarbage", "newproxy", "math.random", "math.randomseed", "string.dump", "_G.io", "_G.dofile", "_G.loadstring",
	} {
		got, err := Run(t.Context(), "return type("+name+")", nil, Default())
		if err != nil || got != "nil" {
			t.Errorf("%s is %v, %v", name, got, err)
		}
	}
}
