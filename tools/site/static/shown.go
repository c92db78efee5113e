package static

import (
	"fmt"
	"html"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// writeShown writes the pages of files and folders of the repository that pages lead to: the text of a file, the list of a folder.
func (s *Site) writeShown() error {
	var names []string
	for name := range s.shown {
		names = append(names, name)
	}
	for len(names) > 0 {
		slices.Sort(names)
		name := names[0]
		names = names[1:]
		at := s.target(name)
		if s.out[at] != nil {
			continue
		}
		info, err := os.Stat(filepath.Join(s.root, name))
		if err != nil {
			return fmt.Errorf("a page leads to what is not there: %w", err)
		}
		var body string
		if info.IsDir() {
			inside, list, err := s.list(name, at)
			if err != nil {
				return err
			}
			body = list
			names = append(names, inside...)
		} else {
			text, err := os.ReadFile(filepath.Join(s.root, name))
			if err != nil {
				return err
			}
			body = "<pre><code>" + html.EscapeString(string(text)) + "</code></pre>"
		}
		if err := s.write(at, name, []byte("<h1>"+html.EscapeString(name)+"</h1>\n"+body)); err != nil {
			return err
		}
	}
	return nil
}

// list returns the files of a folder, and the page that lists them. Folders in it are left out: what is of interest there has links of
// its own.
func (s *Site) list(name, at string) (files []string, page string, err error) {
	found, err := os.ReadDir(filepath.Join(s.root, name))
	if err != nil {
		return nil, "", err
	}
	var b strings.Builder
	b.WriteString("<ul>\n")
	for _, f := range found {
		switch path.Ext(f.Name()) {
		case ".yaml", ".md", ".json":
		default:
			continue
		}
		file := path.Join(name, f.Name())
		if s.sources[file] == nil {
			files = append(files, file)
		}
		fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a></li>\n", relative(at, s.target(file)), html.EscapeString(f.Name()))
	}
	b.WriteString("</ul>\n")
	return files, b.String(), nil
}
