package expression

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const gi = 1 << 30

func TestResults(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		variable Variable
		at       int64 // thousandths
		want     int64
	}{
		"half of two containers":                 {"max(cpu*50%, 50m)", CPU, 600, 300},
		"half of the larger one":                 {"max(cpu*50%, 50m)", CPU, 400, 200},
		"the least":                              {"max(cpu*50%,50m)", CPU, 100, 50},
		"in pieces, the first":                   {"0.5*cpu - 0.3*max(0,cpu-4) + 0.3*max(0,cpu-8)", CPU, 3000, 1500},
		"in pieces, the second":                  {"0.5*cpu - 0.3*max(0,cpu-4) + 0.3*max(0,cpu-8)", CPU, 6000, 2400},
		"in pieces, the third":                   {"0.5*cpu - 0.3*max(0,cpu-4) + 0.3*max(0,cpu-8)", CPU, 10000, 3800},
		"a plain number is cores":                {"0.5", CPU, 0, 500},
		"a plain number is bytes":                {"1e3", Memory, 0, 1000000},
		"a fraction without a zero":              {".5", CPU, 0, 500},
		"an exponent":                            {"5E-1", CPU, 0, 500},
		"binary units":                           {"memory/2 + 1.5Gi - 1Ki", Memory, 2 * gi * 1000, (gi + gi + gi/2 - 1024) * 1000},
		"decimal units":                          {"1k + 1M", Memory, 0, 1001000 * 1000},
		"products bind tighter, from the left":   {"1 + 8/2/2*3", CPU, 0, 7000},
		"parentheses and minus":                  {"-(cpu - 2) * -(-1) + 4", CPU, 1000, 5000},
		"upper case":                             {"MIN(CPU, 2)", CPU, 3000, 2000},
		"a product is cut off at thousandths":    {"cpu*0.3333", CPU, 1000, 333},
		"a number is cut off when it is added":   {"0.0009 + 0.0009*1000m + cpu", CPU, 0, 0},
		"numbers are exact among themselves":     {"0.1*3*10*cpu", CPU, 1000, 3000},
		"negative in between":                    {"max(0, cpu - 4)", CPU, 1000, 0},
		"memory has nothing to do with its name": {"memory*50% - 100Mi", Memory, gi * 1000, (gi/2 - 100<<20) * 1000},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Compile(tc.text, tc.variable)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.At(tc.at); err != nil || got != tc.want {
				t.Errorf("%s at %d is %d (%v), want %d", tc.text, tc.at, got, err, tc.want)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "it ends too early",
		"cpu*cpu":                "two quantities can't be multiplied",
		"100m*2m":                "two quantities can't be multiplied",
		"1/cpu":                  "nothing can be divided by a quantity",
		"cpu/100m":               "nothing can be divided by a quantity",
		"cpu/(2-2)":              "nothing can be divided by zero",
		"100Xi":                  `"100Xi" is not a quantity`,
		"1E":                     `"1E" is not a quantity`,
		"1e3m":                   `"1e3m" is not a quantity`,
		"1e999999999999":         "out of range",
		"1.2.3":                  `"1.2.3" is not a number`,
		"memory":                 `at character 1: "memory" is not known: there are cpu, max and min`,
		"max(1)":                 `at character 6: ")" is not expected here`,
		"max(1,2,3)":             `at character 8: "," is not expected here`,
		"(1":                     "it ends too early",
		"1 2":                    `at character 3: "2" is not expected here`,
		"cpu ! 2":                `at character 5: '!' means nothing here`,
		"cpu - 2000":             "is negative",
		strings.Repeat("(", 2e3): "it has 2000 characters; 1024 are allowed",
	} {
		if err := Check(text, CPU); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q was answered with %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"memory*50% - 100Mi", "200Mi", "memory", "min(memory, 1Gi)", "memory - 1Ti"} {
		if err := Check(text, Memory); err != nil {
			t.Errorf("%q was answered with %v", text, err)
		}
	}
	constant, err := Compile("200m", CPU)
	if err != nil || constant.Uses() {
		t.Errorf("200m uses the variable (%v)", err)
	}
	negative, err := Compile("cpu - 1", CPU)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := negative.At(999); err == nil {
		t.Error("a negative result is no error")
	}
}

// TestSumsOfWholeNumbers compares with plain arithmetic.
func TestSumsOfWholeNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpu := rapid.Int64Range(0, 1000).Draw(t, "cpu")
		text, want := "cpu", cpu
		for range rapid.IntRange(0, 10).Draw(t, "terms") {
			factor := rapid.Int64Range(0, 9).Draw(t, "factor")
			if rapid.Bool().Draw(t, "plus") {
				text, want = fmt.Sprintf("%s + %d*cpu", text, factor), want+factor*cpu
			} else {
				text, want = fmt.Sprintf("max(%s, %dm)", text, factor), max(want, factor)
			}
		}
		e, err := Compile(text, CPU)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.At(cpu); err != nil || got != want {
			t.Errorf("%s at %d is %d (%v), want %d", text, cpu, got, err, want)
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"max(cpu*50%, 50m)", "0.5*cpu - 0.3*max(0,cpu-4)", "1e18/3*cpu", "-(((cpu)))", "100Xi"} {
		f.Add(seed, int64(1500))
	}
	f.Fuzz(func(t *testing.T, text string, at int64) {
		e, err := Compile(text, CPU)
		if err != nil {
			return
		}
		if got, err := e.At(at); err == nil && got < 0 {
			t.Errorf("%q at %d is %d", text, at, got)
		}
	})
}
