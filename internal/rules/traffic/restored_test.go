package traffic

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEditsOfRoutesInAReleaseSurvive has somebody change a route while traffic is split.
func TestEditsOfRoutesInAReleaseSurvive(t *testing.T) {
	const original = `{rules: [{matches: [{path: {value: /a}}], backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 80, weight: 3}]}]}`
	for name, tc := range map[string]struct {
		edit func(rule map[string]any, spec map[string]any)
		want string
	}{
		"a filter of a rule that is split": {
			func(rule, _ map[string]any) { rule["filters"] = []any{map[string]any{"type": "x"}} },
			`{rules: [{matches: [{path: {value: /a}}], filters: [{type: x}], backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 80, weight: 3}]}]}`,
		},
		"another port of a backend": {
			func(rule, _ map[string]any) { list(rule, "backendRefs")[2]["port"] = int64(81) },
			`{rules: [{matches: [{path: {value: /a}}], backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 81, weight: 3}]}]}`,
		},
		"a rule before it that looks the same but for weights": {
			func(rule, spec map[string]any) {
				first := copied(rule)
				setList(first, "backendRefs", []map[string]any{{"name": "third", "weight": int64(1)}})
				setList(spec, "rules", []map[string]any{first, rule})
			},
			`{rules: [{matches: [{path: {value: /a}}], backendRefs: [{name: third, weight: 1}]},
				{matches: [{path: {value: /a}}], backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 80, weight: 3}]}]}`,
		},
		"one backend less": {
			func(rule, _ map[string]any) { setList(rule, "backendRefs", list(rule, "backendRefs")[:2]) },
			`{rules: [{matches: [{path: {value: /a}}], backendRefs: [{name: web, port: 80, weight: 7}]}]}`,
		},
		"one backend more keeps its weight": {
			func(rule, _ map[string]any) {
				setList(rule, "backendRefs", append(list(rule, "backendRefs"), map[string]any{"name": "new", "weight": int64(9)}))
			},
			`{rules: [{matches: [{path: {value: /a}}], backendRefs: [{name: web, port: 80, weight: 7}, {name: other, port: 80, weight: 3}, {name: new, weight: 9}]}]}`,
		},
		"the manifest is written back": {
			func(rule, _ map[string]any) {
				setList(rule, "backendRefs", []map[string]any{{"name": "web", "port": int64(80), "weight": int64(5)}})
			},
			`{rules: [{matches: [{path: {value: /a}}], backendRefs: [{name: web, port: 80, weight: 5}]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := fields(t, original)
			current, err := GatewayRoute(HTTPRoute, before, split(20))
			if err != nil {
				t.Fatal(err)
			}
			tc.edit(list(current, "rules")[0], current)
			if diff := cmp.Diff(fields(t, tc.want), RestoredRoute(before, current, split(20))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestARouteWhoseOriginalIsLost gets back the shares that it had, if not the numbers.
func TestARouteWhoseOriginalIsLost(t *testing.T) {
	for name, tc := range map[string]struct{ original, want string }{
		"a backend alone": {"{rules: [{backendRefs: [{name: web}]}]}", "{rules: [{backendRefs: [{name: web}]}]}"},
		"two backends": {"{rules: [{backendRefs: [{name: web, weight: 7}, {name: other, weight: 3}]}]}",
			"{rules: [{backendRefs: [{name: web, weight: 700}, {name: other, weight: 300}]}]}"},
	} {
		current, err := GatewayRoute(HTTPRoute, fields(t, tc.original), split(20))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fields(t, tc.want), RestoredRoute(nil, current, split(20))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhatAScriptLeavesAloneIsAsItIsNow has somebody change an object that a script edits.
func TestWhatAScriptLeavesAloneIsAsItIsNow(t *testing.T) {
	original := Original{Spec: fields(t, "{weights: [1], kept: a}"), Labels: map[string]string{"a": "b"}}
	edit := Original{Spec: fields(t, "{weights: [1, 2], added: 1, kept: a}"), Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"on": "yes"}}
	now := Original{Spec: fields(t, "{weights: [1, 2], added: 1, kept: c, new: d}"), Labels: map[string]string{"a": "e"}, Annotations: map[string]string{"on": "yes", "x": "y"}}
	want := Original{Spec: fields(t, "{weights: [1], kept: c, new: d}"), Labels: map[string]string{"a": "e"}, Annotations: map[string]string{"x": "y"}}
	if diff := cmp.Diff(want, Merged(original, now, []Original{edit})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
