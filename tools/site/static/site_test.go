package static

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

// built returns the site of the repository.
func built(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := Build(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// page is what a test reads of a page.
type page struct {
	links []string
	ids   map[string]bool
}

// read reads a page as XML: it is closed and nested as it should be.
func read(t *testing.T, name string, text []byte) page {
	t.Helper()
	p := page{ids: map[string]bool{}}
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		} else if err != nil {
			t.Fatalf("%s is not well-formed: %v", name, err)
		}
		element, is := token.(xml.StartElement)
		if !is {
			continue
		}
		for _, a := range element.Attr {
			switch a.Name.Local {
			case "href", "src":
				p.links = append(p.links, a.Value)
			case "id":
				if p.ids[a.Value] {
					t.Errorf("%s has two elements %q", name, a.Value)
				}
				p.ids[a.Value] = true
			}
		}
	}
}

// TestSite: every page is well-formed, every link leads to a file of the site and to an element of its, no other host is asked for anything, and
// each page is reached from the first one.
func TestSite(t *testing.T) {
	files := built(t)
	pages := map[string]page{}
	for name, text := range files {
		if strings.HasSuffix(name, ".html") {
			pages[name] = read(t, name, text)
		}
	}
	next := map[string][]string{}
	for name, p := range pages {
		for _, link := range p.links {
			u, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			to := name
			if u.Path != "" {
				to = path.Join(path.Dir(name), u.Path)
			}
			if files[to] == nil {
				t.Errorf("%s leads to %s, which is not there", name, link)
			} else if u.Fragment != "" && !pages[to].ids[u.Fragment] {
				t.Errorf("%s leads to %s, which has no such element", name, link)
			}
			next[name] = append(next[name], to)
		}
	}
	reached, todo := map[string]bool{}, []string{"index.html"}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if !reached[at] {
			reached[at] = true
			todo = append(todo, next[at]...)
		}
	}
	for name := range pages {
		if !reached[name] {
			t.Errorf("no link leads to %s", name)
		}
	}
	if len(pages) < 50 {
		t.Errorf("there are %d pages only", len(pages))
	}
	for _, name := range []string{"assets/site.css", "assets/site.js", "assets/search.js"} {
		if bytes.Contains(files[name], []byte("://")) || bytes.Contains(files[name], []byte("@import")) {
			t.Errorf("%s asks another host", name)
		}
	}
}

// TestSearch: the script of the site finds what its index has: guides before the reference, all words of a query, words by their beginnings.
func TestSearch(t *testing.T) {
	files := built(t)
	vm := goja.New()
	for _, name := range []string{"assets/search.js", "assets/index.js"} {
		if _, err := vm.RunString(string(files[name])); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	find := func(query string) []string {
		if err := vm.Set("query", query); err != nil {
			t.Fatal(err)
		}
		value, err := vm.RunString("search(searchIndex, query).map(function (s) { return s.page + '#' + s.anchor; })")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		if err := vm.ExportTo(value, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	has := func(query, page string, first int) {
		t.Helper()
		found := find(query)
		for _, at := range found[:min(first, len(found))] {
			if strings.HasPrefix(at, page) {
				return
			}
		}
		t.Errorf("%q finds %q, and %s is not among the first %d", query, found[:min(first, len(found))], page, first)
	}
	has("partition", "docs/cloneset.html", 10)
	has("cloneset", "docs/cloneset.html", 1)
	has("canary weights of ingress", "docs/rollouts-routes.html", 10)
	has("reserveOrd", "docs/statefulset.html", 5)
	has("spec.scaleStrategy.podsToDelete", "docs/reference/clonesets.apps.kruise.io.html", 3)
	if found := find("partition quagga"); len(found) > 0 {
		t.Errorf("a word that no page has finds %q", found)
	}
}

// TestFragments: what a block is a part of can be read on the page.
func TestFragments(t *testing.T) {
	if text := string(built(t)["docs/launch-priority.html"]); !strings.Contains(text, "<em>Part of a Pod, at <code>spec.containers[0]</code>:</em>") {
		t.Error("the page of launch priorities does not tell what its second block is a part of")
	}
}
