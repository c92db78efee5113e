package rights

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// use is what an account did in a test.
type use struct {
	account, verb, group, resource, namespace, name string
	// part is the optional part of an install whose right it was; empty for config/default.
	part string
	// test is the folder of the suite and, where it is known, the name of the test.
	test string
}

const tab = "\t"

// head is the first line of the table.
const head = "account" + tab + "verb" + tab + "group" + tab + "resource" + tab + "namespace" + tab + "name" + tab + "part" + tab + "test"

func (u use) line() string {
	return strings.Join([]string{u.account, u.verb, u.group, u.resource, u.namespace, u.name, u.part, u.test}, tab)
}

// what is the use, whoever saw it.
func (u use) what() use {
	u.test = ""
	return u
}

// readTable returns the uses of a table.
func readTable(path string) ([]use, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if lines[0] != head {
		return nil, fmt.Errorf("%s begins with %q, want %q", path, lines[0], head)
	}
	var all []use
	for i, line := range lines[1:] {
		f := strings.Split(line, tab)
		if len(f) != 8 {
			return nil, fmt.Errorf("line %d of %s has %d fields, want 8", i+2, path, len(f))
		}
		all = append(all, use{f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]})
	}
	return all, nil
}

// writeTable writes a line for each use: with the test that had it before if it was seen there again, and else with the first that names a
// test.
func writeTable(path string, before, seen []use) error {
	tests := map[use][]string{}
	for _, u := range seen {
		tests[u.what()] = append(tests[u.what()], u.test)
	}
	kept := map[use]string{}
	for _, u := range before {
		kept[u.what()] = u.test
	}
	var lines []string
	for u, by := range tests {
		slices.SortFunc(by, func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.Count(b, " "), strings.Count(a, " ")), strings.Compare(a, b))
		})
		u.test = by[0]
		if slices.Contains(by, kept[u.what()]) {
			u.test = kept[u.what()]
		}
		lines = append(lines, u.line())
	}
	slices.Sort(lines)
	text := strings.Join(append([]string{head}, lines...), "\n") + "\n"
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // for everybody to read
}

// recorded returns what suites have recorded in a folder, as far as the manifests allow it.
func recorded(folder string, rights []right) ([]use, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err == nil && len(files) == 0 {
		err = errors.New("no suite has recorded anything in " + folder)
	}
	if err != nil {
		return nil, err
	}
	var all []use
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var uses []cluster.TestedUse
		if err := json.Unmarshal(text, &uses); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for _, u := range uses {
			seen := use{
				account: u.Account, verb: u.Verb, group: u.Group, resource: u.Resource, namespace: u.Namespace, name: u.Name, test: u.Test,
			}
			// What all accounts may do, and what a test itself has given, is no use of these rights.
			if holders := rightsFor(rights, seen); len(holders) > 0 {
				seen.part = holders[0].part()
				all = append(all, nameless(anyKind(seen, rights), rights))
			}
		}
	}
	return all, nil
}

// anyKind leaves out the resource of a use that only rights on all groups are about: it is that of a kind that a test has made, perhaps
// with another name each time.
func anyKind(u use, rights []right) use {
	if slices.ContainsFunc(rights, func(r right) bool { return r.group != "*" && r.allows(u) }) {
		return u
	}
	_, subresource, isBelow := strings.Cut(u.resource, "/")
	u.resource = "*"
	if isBelow {
		u.resource += "/" + subresource
	}
	return u
}

// nameless leaves out the name and the namespace of a use that no right is about.
func nameless(u use, rights []right) use {
	without := u
	without.name, without.namespace = "", ""
	if slices.ContainsFunc(rights, func(r right) bool { return r.allows(without) }) &&
		!slices.ContainsFunc(rights, func(r right) bool { return (r.name != "" || r.namespace != "") && r.allows(u) }) {
		return without
	}
	return u
}
