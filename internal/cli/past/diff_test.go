package past

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

func fields(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDiff(t *testing.T) {
	for name, tc := range map[string]struct {
		old, new string
		want     []Difference
	}{
		"the same": {"{a: {b: 1}}", "{a: {b: 1}}", nil},
		"an image, found by the name of its container": {"{spec: {containers: [{name: app, image: a:1}, {name: log, image: l}]}}", "{spec: {containers: [{name: app, image: a:2}, {name: log, image: l}]}}",
			[]Difference{{"/spec/containers/app/image", "a:1", "a:2"}}},
		"a container less":          {"{containers: [{name: app}, {name: log}]}", "{containers: [{name: app}]}", []Difference{{"/containers/log", map[string]any{"name": "log"}, nil}}},
		"the same in another order": {"{containers: [{name: app}, {name: log}]}", "{containers: [{name: log}, {name: app}]}", []Difference{{"/containers", []any{"app", "log"}, []any{"log", "app"}}}},
		"a list of values":          {"{command: [a, b]}", "{command: [a, c]}", []Difference{{"/command", []any{"a", "b"}, []any{"a", "c"}}}},
		"a key with slashes":        {"{annotations: {a.io/b: x}}", "{annotations: {a.io/b: z}}", []Difference{{"/annotations/a.io~1b", "x", "z"}}},
		"the first container":       {"{}", "{containers: [{name: app}]}", []Difference{{"/containers", nil, []any{map[string]any{"name": "app"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Diff(fields(t, tc.old), fields(t, tc.new))); d != "" {
				t.Error(d)
			}
		})
	}
}

func stored(t *testing.T, name, template string) Entry {
	t.Helper()
	rev := &appsv1.ControllerRevision{}
	rev.Name = name
	encoded, err := yaml.YAMLToJSON([]byte("{spec: {template: " + template + "}}"))
	if err != nil {
		t.Fatal(err)
	}
	rev.Data = runtime.RawExtension{Raw: encoded}
	return Entry{Name: name, Stored: rev}
}

func TestHowItGoes(t *testing.T) {
	old := stored(t, "a", "{spec: {containers: [{name: app, image: a:1}]}}")
	for name, tc := range map[string]struct {
		to      string
		inPlace bool
		why     string
	}{
		"another image": {"{spec: {containers: [{name: app, image: a:2}]}}", true, "app a:1 -> a:2"},
		"a label":       {"{metadata: {labels: {x: z}}, spec: {containers: [{name: app, image: a:1}]}}", true, "no container restarts: metadata"},
		"a command": {"{spec: {containers: [{name: app, image: a:1, command: [x]}]}}", false,
			"add /spec/containers/0/command: only images, labels, annotations and, where enabled, cpu and memory can change in place"},
	} {
		t.Run(name, func(t *testing.T) {
			inPlace, why := HowItGoes(old, stored(t, "b", tc.to), inplace.Options{})
			if inPlace != tc.inPlace || why != tc.why {
				t.Errorf("got %v %q, want %v %q", inPlace, why, tc.inPlace, tc.why)
			}
		})
	}
}

func TestFind(t *testing.T) {
	entries := []Entry{{Revision: 5, Name: "web-e"}, {Revision: 3, Name: "web-c"}}
	for name, tc := range map[string]struct {
		number int64
		want   string
		err    string
	}{
		"the one before the newest": {0, "web-c", ""},
		"by number":                 {5, "web-e", ""},
		"one that is gone":          {4, "", "there is no revision 4: there are [5 3]"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Find(entries, tc.number)
			if got.Name != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("got %q, %v", got.Name, err)
			}
		})
	}
	if _, err := Find(entries[:1], 0); err == nil {
		t.Error("the only revision was taken for an earlier one")
	}
	if e, found := Named(entries, "c"); !found || e.Revision != 3 {
		t.Errorf("by its hash: %v %v", e, found)
	}
}
