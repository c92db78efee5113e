// Package pages reads the documentation: what its pages show as code, where they lead, and which places of them can be led to.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Page is a page of the documentation.
type Page struct {
	// File is its path below the root of the repository, with slashes.
	File string
	// Blocks are the fenced blocks of code in it, Spans what its text shows as code, Links what it leads to, Anchors the places in it that
	// can be led to.
	Blocks  []Block
	Spans   []Text
	Links   []Text
	Anchors []string
	// Headings are the texts of its headings with their marks, as in "## Fields".
	Headings []string
}

// Text is a part of a line.
type Text struct {
	Line int
	Text string
}

// Block is a fenced block of code.
type Block struct {
	File string
	Line int
	// Language is what stands behind the fence, Text what is in it.
	Language, Text string
	// Kind and Path say of which object the block is a fragment, and of which field. They stand in a comment right before the block:
	//
	//	<!-- fragment of CloneSet spec.updateStrategy -->
	//
	// Without a path the block has the fields of the object itself. StatefulSet.apps is that of Kubernetes. Kind is empty for a whole
	// object.
	Kind, Path string
}

// String returns where a block stands.
func (b Block) String() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// All returns the pages below the root of the repository: those in docs, and those beside code that are written for users.
func All(root string) ([]Page, error) {
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	var out []Page
	for _, file := range slices.Compact(files) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		out = append(out, Read(filepath.ToSlash(name), string(text)))
	}
	return out, nil
}

func fence() *regexp.Regexp { return regexp.MustCompile("^ *```+ *([a-z]*)$") }
func fragment() *regexp.Regexp {
	return regexp.MustCompile(`^ *<!-- fragment of ([\w.]+)(?: ([\w.\[\]]+))? -->$`)
}
func heading() *regexp.Regexp { return regexp.MustCompile(`^#{1,6} +(.*?) *$`) }
func span() *regexp.Regexp    { return regexp.MustCompile("(`+)(.+?)(`+)") }
func link() *regexp.Regexp    { return regexp.MustCompile(`\]\(([^()\s]+)\)`) }

// Read returns a page with a text.
func Read(file, text string) Page {
	p := Page{File: file}
	isFence, isFragment, isHeading := fence(), fragment(), heading()
	var open *Block
	var body []string
	before := ""
	for i, line := range strings.Split(text, "\n") {
		switch m := isFence.FindStringSubmatch(line); {
		case open != nil && m != nil:
			open.Text = strings.Join(body, "\n") + "\n"
			p.Blocks = append(p.Blocks, *open)
			open, body = nil, nil
		case open != nil:
			body = append(body, line)
		case m != nil:
			open = &Block{File: file, Line: i + 1, Language: m[1]}
			if of := isFragment.FindStringSubmatch(before); of != nil {
				open.Kind, open.Path = of[1], of[2]
			}
		default:
			if h := isHeading.FindStringSubmatch(line); h != nil {
				p.Headings = append(p.Headings, line)
				p.Anchors = append(p.Anchors, anchor(h[1], p.Anchors))
			}
			p.readLine(i+1, line)
		}
		before = line
	}
	return p
}

func (p *Page) readLine(n int, line string) {
	for _, m := range span().FindAllStringSubmatch(line, -1) {
		if m[1] == m[3] {
			p.Spans = append(p.Spans, Text{n, strings.TrimSpace(m[2])})
		}
	}
	for _, m := range link().FindAllStringSubmatch(span().ReplaceAllString(line, "code"), -1) {
		p.Links = append(p.Links, Text{n, m[1]})
	}
}

// anchor returns the anchor that the usual viewers of Markdown give a heading: its text in small letters, without punctuation, with
// hyphens for blanks, and with a number where there is such a one already.
func anchor(heading string, taken []string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	heading = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
	out := strings.ReplaceAll(heading, " ", "-")
	for n, first := 1, out; slices.Contains(taken, out); n++ {
		out = fmt.Sprintf("%s-%d", first, n)
	}
	return out
}
