package reference

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func scope(name string) string {
	if name == "Cluster" {
		return "cluster-scoped"
	}
	return "namespaced"
}

func code(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// paragraph returns a text of a comment as one paragraph, in which Markdown finds no marks.
func paragraph(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "[", `\[`).Replace(oneLine(text))
}

// cell returns a text that fits into a cell of a table.
func cell(text string) string { return strings.ReplaceAll(oneLine(text), "|", `\|`) }

func firstSentence(text string) string {
	first, _, _ := strings.Cut(oneLine(text), ". ")
	return strings.TrimSuffix(first, ".")
}

// guideOf returns the page in docs that the README names for a kind, if there is one.
func guideOf(root string, d *definition) string {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return ""
	}
	others := map[string]string{
		"NodePodProbe": "probes.md", "BatchRelease": "rollouts-design.md", "TrafficRouting": "rollouts-routes.md",
		"RolloutHistory": "rollouts.md",
	}
	if page, is := others[d.Spec.Names.Kind]; is {
		return page
	}
	for _, m := range regexp.MustCompile(`\[([\w, ]+)\]\(docs/([\w-]+\.md)\)`).FindAllStringSubmatch(string(text), -1) {
		if slices.Contains(strings.Split(m[1], ", "), d.Spec.Names.Kind) {
			return m[2]
		}
	}
	return ""
}

// hasParent reports whether a field that another one is below is among some fields.
func hasParent(among map[string]field, path string) bool {
	for at := strings.LastIndexByte(path, '.'); at > 0; at = strings.LastIndexByte(path[:at], '.') {
		if _, is := among[strings.TrimRight(path[:at], "[]{}")]; is {
			return true
		}
	}
	return false
}
