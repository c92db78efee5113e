package integrations

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/cli"
)

// TestKeysOfK9sCallCommandsThatThereAre: each key of k9s is free where it works, and calls a command of kubectl-kruise.
func TestKeysOfK9sCallCommandsThatThereAre(t *testing.T) {
	var file struct {
		Plugins map[string]struct {
			ShortCut, Description, Command string
			Scopes, Args                   []string
			Confirm, Dangerous, Background bool
		}
	}
	read(t, "k9s/plugins.yaml", &file)
	if len(file.Plugins) < 10 {
		t.Errorf("there are %d keys", len(file.Plugins))
	}
	taken := map[string]string{}
	called := regexp.MustCompile(`\bkruise ([a-z]+) (\S+) -n \$NAMESPACE --context \$CONTEXT`)
	for name, p := range file.Plugins {
		line := p.Command + " " + strings.Join(p.Args, " ")
		found := called.FindStringSubmatch(line)
		if found == nil || p.Description == "" {
			t.Errorf("%s calls %q", name, line)
			continue
		}
		var out, failed bytes.Buffer
		code := cli.Main(t.Context(), []string{"kubectl-kruise", found[1], "--help"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &failed})
		if code != 0 || !strings.Contains(out.String(), "kubectl kruise "+found[1]) {
			t.Errorf("%s calls %q: exit code %d, %s%s", name, found[1], code, out.String(), failed.String())
		}
		writes := slices.Contains([]string{"pause", "resume", "approve", "retry", "undo", "abort"}, found[1])
		if asks := found[1] == "undo" || found[1] == "abort"; writes && !p.Confirm && !asks || asks && (p.Background || !p.Dangerous) {
			t.Errorf("%s writes without being asked", name)
		}
		for _, scope := range p.Scopes {
			if other := taken[scope+p.ShortCut]; other != "" {
				t.Errorf("%s and %s have one key for %s", name, other, scope)
			}
			taken[scope+p.ShortCut] = name
		}
	}
}

// TestColumnsOfK9sAreFields: each column reads a field that the schema of the kind has.
func TestColumnsOfK9sAreFields(t *testing.T) {
	var file struct {
		Views map[string]struct{ Columns []string }
	}
	read(t, "k9s/views.yaml", &file)
	schemas := schemas(t)
	for view, v := range file.Views {
		schema, ok := schemas[view]
		if !ok {
			t.Errorf("there is no kind %s", view)
		}
		for _, column := range v.Columns {
			_, path, found := strings.Cut(column, ":.")
			if !found {
				continue // one that each kind has
			}
			path, _, _ = strings.Cut(path, "|")
			field := schema
			for _, name := range strings.Split(path, ".") {
				field, _ = at(field, "properties").(map[string]any)
				field, _ = field[name].(map[string]any)
			}
			if field == nil {
				t.Errorf("%s has no field .%s", view, path)
			}
		}
	}
}

// schemas returns the schemas of all kinds, by group, version and name.
func schemas(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, pattern := range []string{"../config/crd/bases/*.yaml", "../config/rollouts/crd/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			var crd struct {
				Spec struct {
					Group    string
					Names    struct{ Plural string }
					Versions []struct {
						Name   string
						Schema struct {
							OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
						}
					}
				}
			}
			if err := yaml.Unmarshal([]byte(read(t, path, nil)), &crd); err != nil {
				continue // a list of the files
			}
			for _, version := range crd.Spec.Versions {
				out[crd.Spec.Group+"/"+version.Name+"/"+crd.Spec.Names.Plural] = version.Schema.OpenAPIV3Schema
			}
		}
	}
	return out
}
