package ordinal

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

// entries reads numbers and texts as a user would write them.
func entries(values ...any) []intstr.IntOrString {
	var out []intstr.IntOrString
	for _, v := range values {
		switch v := v.(type) {
		case int:
			out = append(out, intstr.FromInt32(int32(v)))
		case string:
			out = append(out, intstr.FromString(v))
		}
	}
	return out
}

func TestSlots(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas, start int32
		reserve         []intstr.IntOrString
		want            []int32
	}{
		"none reserved": {replicas: 3, want: []int32{0, 1, 2}},
		"no replicas":   {replicas: 0, reserve: entries(0), want: []int32{}},
		"the numbering goes on beyond a reserved": {replicas: 4, reserve: entries(1), want: []int32{0, 2, 3, 4}},
		"reserved below the start do not matter":  {replicas: 4, start: 2, reserve: entries(1, 3), want: []int32{2, 4, 5, 6}},
		"a range and a number":                    {replicas: 4, reserve: entries("2-5", 7), want: []int32{0, 1, 6, 8}},
		"the lowest":                              {replicas: 3, reserve: entries(0), want: []int32{1, 2, 3}},
		"a number as text":                        {replicas: 2, reserve: entries("0"), want: []int32{1, 2}},
		"overlapping ranges in any order":         {replicas: 2, reserve: entries("4-9", "0-5", 3), want: []int32{10, 11}},
		"two billion reserved cost nothing":       {replicas: 2, reserve: entries("0-2000000000"), want: []int32{2000000001, 2000000002}},
		"the numbers run out":                     {replicas: 3, start: math.MaxInt32 - 1, want: []int32{math.MaxInt32 - 1, math.MaxInt32}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Parse(tc.reserve)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, r.Slots(tc.start, tc.replicas)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseSaysWhichEntryIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		entry any
		want  string
	}{
		"a negative number":    {-1, "reserveOrdinals[1]: reserve ordinal is negative: -1"},
		"a range of words":     {"a-b", `reserveOrdinals[1]: reserve ordinal is not a valid range: "a-b" is neither a number nor a range such as "3-5"`},
		"a range backwards":    {"5-2", `reserveOrdinals[1]: reserve ordinal is invalid: "5-2" ends before it begins`},
		"a sign":               {"+3", `reserveOrdinals[1]: reserve ordinal is not a valid range: "+3" is neither a number nor a range such as "3-5"`},
		"nothing":              {"", `reserveOrdinals[1]: reserve ordinal is not a valid range: "" is neither a number nor a range such as "3-5"`},
		"more than an ordinal": {"0-2147483648", `reserveOrdinals[1]: reserve ordinal is not a valid range: "0-2147483648" is neither a number nor a range such as "3-5"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(entries(7, tc.entry))
			if err == nil || err.Error() != tc.want {
				t.Errorf("error is %v, want %s", err, tc.want)
			}
		})
	}
}

func TestSlotsAreThoseThatAreNotReserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reserved := map[int32]bool{}
		var list []intstr.IntOrString
		for range rapid.IntRange(0, 5).Draw(t, "entries") {
			first := rapid.Int32Range(0, 30).Draw(t, "first")
			last := first + rapid.Int32Range(0, 6).Draw(t, "length")
			list = append(list, intstr.FromString(fmt.Sprintf("%d-%d", first, last)))
			for n := first; n <= last; n++ {
				reserved[n] = true
			}
		}
		start, replicas := rapid.Int32Range(0, 20).Draw(t, "start"), rapid.Int32Range(0, 20).Draw(t, "replicas")
		var want []int32
		for n := start; len(want) < int(replicas); n++ {
			if !reserved[n] {
				want = append(want, n)
			}
		}
		r, err := Parse(list)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Slots(start, replicas); !slices.Equal(got, want) {
			t.Fatalf("slots are %v, want %v", got, want)
		}
		for n := range int32(40) {
			if r.Has(n) != reserved[n] {
				t.Fatalf("reserved[%d] is %v", n, r.Has(n))
			}
		}
		if r.Size() != int64(len(reserved)) {
			t.Fatalf("there are %d reserved, want %d", r.Size(), len(reserved))
		}
	})
}

func TestSplit(t *testing.T) {
	for name, tc := range map[string]struct {
		set string
		n   int32
		ok  bool
	}{
		"web-3":          {"web", 3, true},
		"web-db-10":      {"web-db", 10, true},
		"web-0":          {"web", 0, true},
		"web-03":         {},
		"web-x":          {},
		"web-":           {},
		"web":            {},
		"web-2147483648": {},
	} {
		t.Run(name, func(t *testing.T) {
			if set, n, ok := Split(name); set != tc.set || n != tc.n || ok != tc.ok {
				t.Errorf("split into %q, %d, %v", set, n, ok)
			}
		})
	}
}

func TestMoved(t *testing.T) {
	if diff := cmp.Diff([]int32{3, 0}, Moved([]int32{1, 2, 4}, []int32{6, 5, 3, 0})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Moved(nil, []int32{1}); got != nil {
		t.Errorf("with no slots %v have moved", got)
	}
}
