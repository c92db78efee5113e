package static

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// writePage renders a page, with its links led to what the site has.
func (s *Site) writePage(p *source) error {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithRendererOptions(html.WithXHTML()), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	isFragment := regexp.MustCompile(`(?m)^( *)<!-- fragment of ([\w.]+)(?: ([\w.\[\]]+))? -->$`)
	p.text = isFragment.ReplaceAllFunc(p.text, func(line []byte) []byte {
		m := isFragment.FindSubmatch(line)
		caption := "Part of a " + string(m[2])
		if len(m[3]) > 0 {
			caption += ", at `" + string(m[3]) + "`"
		}
		return []byte(string(m[1]) + "*" + caption + ":*\n")
	})
	document := markdown.Parser().Parse(text.NewReader(p.text), parser.WithContext(parser.NewContext(parser.WithIDs(&anchors{}))))
	at := s.target(p.file)
	var problem error
	err := ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var to string
		switch n := n.(type) {
		case *ast.Link:
			to, problem = s.link(p.file, at, string(n.Destination))
			n.Destination = []byte(to)
		case *ast.Image:
			to, problem = s.image(p.file, at, string(n.Destination))
			n.Destination = []byte(to)
		}
		return ast.WalkContinue, problem
	})
	if err != nil {
		return err
	}
	p.cut(document, at)
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.text, document); err != nil {
		return err
	}
	return s.write(at, p.title, b.Bytes())
}

// link returns where a link of a page leads in the site.
func (s *Site) link(file, at, to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Path == "" {
		return to, err
	}
	name := path.Join(path.Dir(file), u.Path)
	target := s.target(name)
	if strings.HasPrefix(target, "source/") {
		s.shown[name] = true
	}
	u.Path = relative(at, target)
	return u.String(), nil
}

// image takes a picture into the site, and returns where it is for a page.
func (s *Site) image(file, at, to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" {
		return to, err
	}
	name := path.Join(path.Dir(file), u.Path)
	if s.out[name], err = os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name))); err != nil {
		return "", fmt.Errorf("a page shows what is not there: %w", err)
	}
	return relative(at, name), nil
}

// relative returns the way from one file of the site to another.
func relative(from, to string) string { return strings.Repeat("../", strings.Count(from, "/")) + to }

// anchors gives headings the anchors that viewers of repositories give them.
type anchors struct{ taken []string }

// Generate returns the anchor of a heading.
func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(string(value), "$1")
	title = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
	out := strings.ReplaceAll(title, " ", "-")
	for n, first := 1, out; slices.Contains(a.taken, out); n++ {
		out = fmt.Sprintf("%s-%d", first, n)
	}
	a.taken = append(a.taken, out)
	return []byte(out)
}

// Put takes an anchor that a page gives itself.
func (a *anchors) Put(value []byte) { a.taken = append(a.taken, string(value)) }

// cut divides a page at its headings, for the search.
func (p *source) cut(document ast.Node, at string) {
	now := section{Page: at, Title: p.title}
	var words []string
	end := func() {
		now.Text = strings.Join(strings.Fields(strings.Join(words, " ")), " ")
		p.sections = append(p.sections, now)
		words = nil
	}
	for n := document.FirstChild(); n != nil; n = n.NextSibling() {
		if h, is := n.(*ast.Heading); is && h.Level > 1 {
			end()
			id, _ := h.AttributeString("id")
			anchor, _ := id.([]byte)
			now = section{Page: at, Title: p.title, Heading: p.textOf(h), Anchor: string(anchor)}
			continue
		}
		words = append(words, p.textOf(n))
	}
	end()
}

// textOf returns what a part of a page says, without marks.
func (p *source) textOf(of ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(of, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function below returns no error
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteString(" ")
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(p.text))
			if n.SoftLineBreak() {
				b.WriteString(" ")
			}
		case *ast.FencedCodeBlock:
			b.Write(n.Lines().Value(p.text))
		case *ast.CodeBlock:
			b.Write(n.Lines().Value(p.text))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// index returns the script that gives the search all sections. It is a script and no JSON, which browsers do not read from a folder.
func (s *Site) index() ([]byte, error) {
	var all []section
	for _, name := range s.names() {
		all = append(all, s.sources[name].sections...)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte("var searchIndex = "), text, []byte(";\n")), nil
}
