package pages

import (
	"reflect"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	p := Read("docs/x.md", strings.ReplaceAll(`# Sets: a `+"`kind`"+`
See [b](b.md#more), 'kubectl get clone' and '[no](link.md)'.

<!-- fragment of CloneSet spec.template.spec.containers[0] -->
'''yaml
name: main
'''
## Fields
## Fields
'''
plain [x](y.md)
'''
`, "'", "`"))
	want := Page{
		File: "docs/x.md",
		Blocks: []Block{
			{File: "docs/x.md", Line: 5, Language: "yaml", Text: "name: main\n", Kind: "CloneSet", Path: "spec.template.spec.containers[0]"},
			{File: "docs/x.md", Line: 10, Text: "plain [x](y.md)\n"},
		},
		Spans:    []Text{{1, "kind"}, {2, "kubectl get clone"}, {2, "[no](link.md)"}},
		Links:    []Text{{2, "b.md#more"}},
		Anchors:  []string{"sets-a-kind", "fields", "fields-1"},
		Headings: []string{"# Sets: a `kind`", "## Fields", "## Fields"},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got  %+v\nwant %+v", p, want)
	}
}

func TestCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		block Block
		want  []Command
	}{
		"comments, quotes and pipes": {
			Block{Language: "sh", Text: "make demo   # shows it\nkubectl get x -o jsonpath='{range .a}{\"\\n\"}' | yq 'select(.b)'\n"},
			[]Command{{1, []string{"make", "demo"}}, {2, []string{"kubectl", "get", "x", "-o", "jsonpath={range .a}{\"\\n\"}"}}, {2, []string{"yq", "select(.b)"}}},
		},
		"assignments and what is filled in": {
			Block{Language: "sh", Text: "token=$(kubectl create token hub)\nA=b kubectl annotate x y=$(kubectl get ud -o z)/q \\\n --overwrite\n"},
			[]Command{
				{1, []string{"kubectl", "create", "token", "hub"}}, {2, []string{"kubectl", "get", "ud", "-o", "z"}},
				{3, []string{"kubectl", "annotate", "x", "y=$(kubectl get ud -o z)/q", "--overwrite"}},
			},
		},
		"a session": {
			Block{Text: "$ kubectl kruise status cloneset/web\nweb: 2/5; all | is well\n"},
			[]Command{{1, []string{"kubectl", "kruise", "status", "cloneset/web"}}},
		},
	} {
		if got := tc.block.Commands(); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tc.want)
		}
	}
}

func TestFlags(t *testing.T) {
	c := Command{Words: []string{"kubectl", "exec", "-n", "a", "--timeout=10m", "web", "--", "sh", "-c", "x"}}
	if got, want := c.Flags(), []string{"-n", "--timeout"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
