package patch

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"pgregory.net/rapid"
)

func TestBetween(t *testing.T) {
	cases := map[string]struct {
		raw, before, after string
		want               []string
	}{
		"nothing changes": {`{"a":1,"odd":2}`, `{"a":1}`, `{"a":1}`, nil},
		"an item comes first and the others keep what is not known of them": {
			`{"c":[{"name":"app","odd":1}]}`, `{"c":[{"name":"app"}]}`, `{"c":[{"name":"log"},{"name":"app","image":"x"}]}`,
			[]string{`{"op":"replace","path":"/c","value":[{"name":"log"},{"image":"x","name":"app","odd":1}]}`},
		},
		"an item goes": {
			`{"e":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"e":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"e":[{"name":"c"}]}`,
			[]string{`{"op":"replace","path":"/e","value":[{"name":"c"}]}`},
		},
		"a list comes": {`{}`, `{}`, `{"c":[1]}`, []string{`{"op":"add","path":"/c","value":[1]}`}},
		"a list that is null comes": {
			`{"c":null}`, `{}`, `{"c":[1]}`, []string{`{"op":"add","path":"/c","value":[1]}`},
		},
		"a field goes that only our own writing has": {`{}`, `{"a":{}}`, `{}`, nil},
		"a field goes": {`{"a/b":1}`, `{"a/b":1}`, `{}`, []string{`{"op":"remove","path":"/a~1b"}`}},
		"items change places, and keep what is not known of them": {
			`{"c":[{"name":"a"},{"name":"b","odd":1,"e":[{"name":"x","odd":1}],"n":null}]}`, `{"c":[{"name":"a"},{"name":"b","e":[{"name":"x"}],"gone":1}]}`,
			`{"c":[{"name":"b","e":[{"name":"w"},{"name":"x"}],"n":2},{"name":"a"}]}`,
			[]string{`{"op":"replace","path":"/c","value":[{"e":[{"name":"w"},{"name":"x","odd":1}],"n":2,"name":"b","odd":1},{"name":"a"}]}`},
		},
		"many items come, and the others keep what is not known of them": {
			`{"c":[{"name":"a","odd":1}]}`, `{"c":[{"name":"a"}]}`,
			`{"c":[{"name":"1"},{"name":"2"},{"name":"3"},{"name":"4"},{"name":"a","image":"x"},` +
				`{"name":"5"},{"name":"6"},{"name":"7"},{"name":"8"},{"name":"9"}]}`,
			[]string{`{"op":"replace","path":"/c","value":[{"name":"1"},{"name":"2"},{"name":"3"},{"name":"4"},{"image":"x","name":"a","odd":1},` +
				`{"name":"5"},{"name":"6"},{"name":"7"},{"name":"8"},{"name":"9"}]}`},
		},
		"items change places": {
			`{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"b"},{"name":"a"}]}`,
			[]string{`{"op":"replace","path":"/c","value":[{"name":"b"},{"name":"a"}]}`},
		},
		"items without names keep their number": {
			`{"c":[{"a":1,"odd":1}]}`, `{"c":[{"a":1}]}`, `{"c":[{"a":2}]}`,
			[]string{`{"op":"replace","path":"/c","value":[{"a":2,"odd":1}]}`},
		},
		"items without names become more": {
			`{"c":[{"a":1,"odd":1},{"a":2}]}`, `{"c":[{"a":1},{"a":2}]}`, `{"c":[{"a":1},{"a":3},{"a":2}]}`,
			[]string{`{"op":"replace","path":"/c","value":[{"a":1,"odd":1},{"a":3},{"a":2}]}`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, operation := range Between(parse(t, tc.raw), parse(t, tc.before), parse(t, tc.after)) {
				got = append(got, operation.Json())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func parse(t interface{ Fatal(...any) }, text string) map[string]any {
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBetweenLeadsToAfter: the API server, which applies the patch, ends with just what the handler wanted, and what the handler does not know.
func TestBetweenLeadsToAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawObject(t, "before"), drawObject(t, "after")
		encode := func(v any) []byte {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		raw := parse(t, string(encode(before)))
		raw["odd"] = "kept"
		// As it arrives: the values are of other types than those in Go.
		operations := Between(raw, parse(t, string(encode(before))), parse(t, string(encode(after))))
		patch, err := jsonpatch.DecodePatch(encode(operations))
		if err != nil {
			t.Fatal(err)
		}
		result, err := patch.Apply(encode(raw))
		if err != nil {
			t.Fatalf("applying %s to %s: %v", encode(operations), encode(raw), err)
		}
		want := maps.Clone(after)
		want["odd"] = "kept"
		if diff := cmp.Diff(parse(t, string(encode(want))), parse(t, string(result))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", encode(operations), diff)
		}
	})
}

// drawObject draws lists of few items of few names, so that two of them have much in common.
func drawObject(t *rapid.T, label string) map[string]any {
	object := map[string]any{}
	for _, field := range []string{"containers", "env", "plain"} {
		if !rapid.Bool().Draw(t, label+" has "+field) {
			continue
		}
		known := rapid.SampledFrom([][]string{{"a", "b", "c", "d"}, strings.Split("abcdefghijklmnopqrstuvwxyz", "")}).Draw(t, label+" names")
		names := rapid.SliceOfN(rapid.SampledFrom(known), 0, len(known)+1).Draw(t, label+" "+field)
		if rapid.Bool().Draw(t, label+" unique") {
			names = slices.Compact(slices.Sorted(slices.Values(names)))
		}
		list := []any{}
		for _, name := range names {
			item := map[string]any{"name": name}
			if field == "plain" {
				item = map[string]any{"key": name}
			}
			if rapid.Bool().Draw(t, label+" more") {
				item["image"] = strings.Repeat("x", rapid.IntRange(0, 2).Draw(t, "image"))
			}
			list = append(list, item)
		}
		object[field] = list
	}
	return object
}
