// Package docs checks the documentation against what it speaks of: that links lead somewhere, that commands, flags, feature gates, files and fields
// exist, and that every kind has a page. What an API server says of the objects in it is asked in test/kinds/cli.
package docs

import (
	"bytes"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua/parse"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/test/kit/pages"
)

// book is the documentation, and where the repository is.
type book struct {
	*testing.T
	root  string
	pages []pages.Page
}

func read(t *testing.T) *book {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := pages.All(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("there are %d pages only", len(all))
	}
	return &book{t, root, all}
}

func (b *book) exists(name string) bool {
	found, err := filepath.Glob(filepath.Join(b.root, filepath.FromSlash(name)))
	return err == nil && len(found) > 0
}

// TestLinks: what a page leads to within the repository is there, and has the heading that an anchor names.
func TestLinks(t *testing.T) {
	b := read(t)
	anchors := map[string][]string{}
	for _, p := range b.pages {
		anchors[p.File] = p.Anchors
	}
	for _, p := range b.pages {
		for _, link := range p.Links {
			to, err := url.Parse(link.Text)
			if err != nil {
				t.Errorf("%s:%d: %v", p.File, link.Line, err)
				continue
			}
			if to.Scheme != "" {
				continue
			}
			file := p.File
			if to.Path != "" {
				file = path.Join(path.Dir(p.File), to.Path)
			}
			if !b.exists(file) {
				t.Errorf("%s:%d: there is no %s", p.File, link.Line, file)
			} else if names, isPage := anchors[file]; isPage && to.Fragment != "" && !slices.Contains(names, to.Fragment) {
				t.Errorf("%s:%d: %s has no heading #%s, but %s", p.File, link.Line, file, to.Fragment, strings.Join(names, ", "))
			}
		}
	}
}

// TestEveryPageIsLinked: a reader reaches each page in docs from the README, by links of pages.
func TestEveryPageIsLinked(t *testing.T) {
	b := read(t)
	next := map[string][]string{}
	for _, p := range b.pages {
		for _, link := range p.Links {
			to, _, _ := strings.Cut(link.Text, "#")
			next[p.File] = append(next[p.File], path.Join(path.Dir(p.File), to))
		}
	}
	reached, todo := map[string]bool{}, []string{"README.md"}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if !reached[at] {
			reached[at] = true
			todo = append(todo, next[at]...)
		}
	}
	for _, p := range b.pages {
		if strings.HasPrefix(p.File, "docs/") && !reached[p.File] {
			t.Errorf("no link leads to %s: name it in the table of README.md, or on the page of its subject", p.File)
		}
	}
}

// TestBlocks: every block can be read in its language, and one of YAML is a whole object or says of what it is a fragment, so that
// test/kinds/cli has an API server judge it.
func TestBlocks(t *testing.T) {
	for _, p := range read(t).pages {
		for _, block := range p.Blocks {
			switch block.Language {
			case "yaml":
				checkYAML(t, block)
			case "json":
				var any any
				if err := yaml.UnmarshalStrict([]byte(block.Text), &any); err != nil {
					t.Errorf("%s: %v", block, err)
				}
			case "lua":
				if _, err := lua.Parse(strings.NewReader(block.Text), block.String()); err != nil {
					t.Errorf("%s: %v", block, err)
				}
			case "":
				if !block.IsSession() && isCommand(block.Text) {
					t.Errorf("%s: write sh behind its fence: it has commands", block)
				}
			case "sh", "promql", "text":
			default:
				t.Errorf("%s: nothing checks blocks of %s: add that to this test", block, block.Language)
			}
		}
	}
}

func isCommand(text string) bool {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 1 && slices.Contains([]string{"kubectl", "make", "helm", "bin/kruise-local"}, words[0]) {
			return true
		}
	}
	return false
}

func checkYAML(t *testing.T, block pages.Block) {
	t.Helper()
	for document := range bytes.SplitSeq([]byte(block.Text), []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			t.Errorf("%s: %v", block, err)
		}
		if block.Kind == "" && (object["apiVersion"] == nil || object["kind"] == nil) {
			t.Errorf("%s: it has no apiVersion and kind. If it is a part of an object, write right before it of which, as in\n"+
				"<!-- fragment of CloneSet spec.updateStrategy -->", block)
		}
		if block.Kind != "" && object["kind"] != nil && object["apiVersion"] != nil {
			t.Errorf("%s: it is a whole object, and no fragment of a %s", block, block.Kind)
		}
	}
}

// TestPathsInText: a file that a text names is there.
func TestPathsInText(t *testing.T) {
	b := read(t)
	folders := []string{"api/", "charts/", "cmd/", "config/", "docs/", "examples/", "hack/", "internal/", "localcluster/", "test/", "tools/"}
	for _, p := range b.pages {
		if p.File == "CHANGELOG.md" {
			continue // it tells of what was
		}
		for _, span := range p.Spans {
			name := strings.TrimSuffix(span.Text, "/...")
			ours := slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(name, f) })
			if ours && !strings.ContainsAny(name, " ,{<|…=") && !b.exists(name) && !b.exists(path.Join(path.Dir(p.File), name)) {
				t.Errorf("%s:%d: there is no %s", p.File, span.Line, name)
			}
		}
	}
}

// TestEveryKindHasAPage: the page that the README names for a kind has an example of it, more examples to apply, a table, and a link to the reference.
// Kinds that only controllers write are on the page of the kind that they serve.
func TestEveryKindHasAPage(t *testing.T) {
	b := read(t)
	guides := map[string]pages.Page{}
	for _, m := range regexp.MustCompile(`\[([\w, ]+)\]\((docs/[\w-]+\.md)\)`).FindAllStringSubmatch(b.file("README.md"), -1) {
		for kind := range strings.SplitSeq(m[1], ", ") {
			if at := slices.IndexFunc(b.pages, func(p pages.Page) bool { return p.File == m[2] }); at >= 0 {
				guides[kind] = b.pages[at]
			}
		}
	}
	internal := []string{"NodePodProbe", "BatchRelease", "TrafficRouting", "RolloutHistory"}
	for _, crd := range b.crds() {
		kind := crd.Spec.Names.Kind
		p, is := guides[kind]
		if !is {
			if !slices.Contains(internal, kind) {
				t.Errorf("the table of README.md names no page for %s", kind)
			}
			continue
		}
		leads := func(part string) bool {
			return slices.ContainsFunc(p.Links, func(l pages.Text) bool { return strings.Contains(l.Text, part) })
		}
		shown := slices.ContainsFunc(p.Blocks, func(block pages.Block) bool { return strings.Contains(block.Text, "kind: "+kind+"\n") })
		if !shown && !leads("examples/"+strings.ToLower(kind)) && kind != "NodeImage" { // daemon.md shows one
			t.Errorf("%s shows no %s", p.File, kind)
		}
		if kind != "NodeImage" && !leads("examples/") {
			t.Errorf("%s leads to no file in examples", p.File)
		}
		if !leads("reference/" + crd.Spec.Names.Plural) {
			t.Errorf("%s does not lead to reference/%s.%s.md", p.File, crd.Spec.Names.Plural, crd.Spec.Group)
		}
		if !strings.Contains(b.file(p.File), "\n| --- |") {
			t.Errorf("%s has no table of fields", p.File)
		}
	}
}

func (b *book) file(name string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.root, name))
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}
