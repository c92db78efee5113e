// Package static makes the site of the documentation: a page of HTML for each page of Markdown, with navigation and a search that runs in
// the browser. It needs no server: it works from a folder.
package static

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

// Site is the documentation on its way to HTML.
type Site struct {
	root string
	// sources are the pages by their path below root.
	sources map[string]*source
	// shown are files and folders of the repository that pages lead to, and that are shown as they are.
	shown map[string]bool
	out   map[string][]byte
}

// source is a page of Markdown.
type source struct {
	file, title string
	text        []byte
	sections    []section
}

// section is a part of a page below a heading, as the search knows it.
type section struct {
	Page    string `json:"page"`
	Title   string `json:"title"`
	Heading string `json:"heading"`
	Anchor  string `json:"anchor"`
	Text    string `json:"text"`
}

// Build reads the documentation below root, and returns the files of the site by their paths.
func Build(root string) (map[string][]byte, error) {
	s := &Site{root: root, sources: map[string]*source{}, shown: map[string]bool{}, out: map[string][]byte{}}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/reference/*.md", "localcluster/README.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if err := s.read(file); err != nil {
				return nil, err
			}
		}
	}
	if s.sources["README.md"] == nil {
		return nil, fmt.Errorf("there is no README.md in %s", root)
	}
	for _, name := range s.names() {
		if err := s.writePage(s.sources[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := s.writeShown(); err != nil {
		return nil, err
	}
	return s.out, s.writeAssets()
}

// Write builds the site into a folder, which it empties.
func Write(root, to string) error {
	files, err := Build(root)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	for name, text := range files {
		at := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s *Site) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(s.root, file)
	if err != nil {
		return err
	}
	name = filepath.ToSlash(name)
	title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
	s.sources[name] = &source{file: name, title: strings.ReplaceAll(title, "`", ""), text: text}
	return nil
}

func (s *Site) names() []string {
	var out []string
	for name := range s.sources {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// target returns the path in the site of a page, file or folder of the repository.
func (s *Site) target(name string) string {
	switch {
	case name == "README.md":
		return "index.html"
	case s.sources[name] != nil:
		return strings.TrimSuffix(name, ".md") + ".html"
	case s.sources[path.Join(name, "README.md")] != nil:
		return path.Join(name, "README.html")
	}
	return path.Join("source", name+".html")
}

// entry is a line of the navigation.
type entry struct {
	Title, Target string
	Here          bool
}

// group is a part of the navigation.
type group struct {
	Title   string
	Entries []entry
	Open    bool
}

// view is what the template shows.
type view struct {
	Title, Base string
	Groups      []group
	Body        template.HTML
}

func (s *Site) write(at, title string, body []byte) error {
	layout, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return err
	}
	v := view{Title: title, Base: strings.Repeat("../", strings.Count(at, "/")), Groups: s.navigation(at), Body: template.HTML(body)}
	var b strings.Builder
	if err := layout.Execute(&b, v); err != nil {
		return err
	}
	s.out[at] = []byte(b.String())
	return nil
}

func (s *Site) writeAssets() error {
	for _, name := range []string{"site.css", "site.js", "search.js"} {
		text, err := fs.ReadFile(assets, "assets/"+name)
		if err != nil {
			return err
		}
		s.out["assets/"+name] = text
	}
	index, err := s.index()
	s.out["assets/index.js"] = index
	return err
}
