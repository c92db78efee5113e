package integrations

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// dashboard is the part of a dashboard of Grafana that tests look at.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
}

var (
	variable    = regexp.MustCompile(`\$\{?([a-z]+)\}?`)
	labelValues = regexp.MustCompile(`^label_values\((.*), [a-z_]+\)$`)
)

// TestDashboardsAskWhatThereIs: each query of each dashboard is PromQL over metrics that there are, with variables that the dashboard has.
func TestDashboardsAskWhatThereIs(t *testing.T) {
	files, err := filepath.Glob("grafana/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("there are %d dashboards: %v", len(files), err)
	}
	type recording struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []recording
	ids := map[string]bool{}
	for _, file := range files {
		var d dashboard
		read(t, file, &d)
		if d.UID == "" || d.Title == "" || ids[d.UID] {
			t.Errorf("%s has no name of its own", file)
		}
		ids[d.UID] = true
		known := map[string]bool{}
		for _, v := range d.Templating.List {
			if found := labelValues.FindStringSubmatch(v.Definition); found != nil {
				checkVariables(t, d.Title+", variable "+v.Name, v.Definition, known)
				checkMetrics(t, d.Title+", variable "+v.Name, found[1])
			} else if v.Type == "query" {
				t.Errorf("%s: the variable %s is %q", d.Title, v.Name, v.Definition)
			}
			known[v.Name] = true
		}
		if !known["datasource"] {
			t.Errorf("%s names a Prometheus of one cluster", d.Title)
		}
		taken := map[string]bool{}
		for _, p := range d.Panels {
			at := fmt.Sprint(p.GridPos.X, p.GridPos.Y)
			if taken[at] || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
				t.Errorf("%s: the panel %q has no place or asks nothing", d.Title, p.Title)
			}
			taken[at] = true
			for _, target := range p.Targets {
				checkVariables(t, d.Title+", "+p.Title, target.Expr, known)
				checkMetrics(t, d.Title+", "+p.Title, target.Expr)
				rules = append(rules, recording{fmt.Sprintf("query:%d", len(rules)), variable.ReplaceAllString(target.Expr, "sample")})
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", path)
}

func checkVariables(t *testing.T, what, expression string, known map[string]bool) {
	t.Helper()
	for _, found := range variable.FindAllStringSubmatch(expression, -1) {
		if !known[found[1]] {
			t.Errorf("%s asks with $%s, which is no variable before it", what, found[1])
		}
	}
	if strings.Contains(expression, "$__") {
		t.Errorf("%s asks with a macro of Grafana, which no test can check: %s", what, expression)
	}
}
