package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// generate writes the charts into the repository, and what the documentation says of their values.
func (r request) generate() error {
	charts, err := r.charts()
	if err != nil {
		return err
	}
	tables := map[string]string{}
	for _, c := range charts {
		files, err := c.files(r.version)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(r.root, "charts", c.name), files); err != nil {
			return err
		}
		tables[c.name] = table(c.values)
	}
	path := filepath.Join(r.root, "docs", "install.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	filled := string(page)
	for name, rows := range tables {
		if filled, err = fill(filled, name, rows); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return os.WriteFile(path, []byte(filled), 0o644) //nolint:gosec // for everybody to read
}

// fill puts text between the two comments of a page that have a name.
func fill(page, name, text string) (string, error) {
	begin, end := "<!-- values of charts/"+name+" -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("there is no %s, or no %s behind it", strings.TrimSpace(begin), end)
	}
	return before + begin + text + end + after, nil
}

// write puts the files of a chart into a folder, and removes all others from it.
func write(dir string, files map[string]string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // for everybody to read
			return err
		}
	}
	return nil
}
