package integrations

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// rule is an alert.
type rule struct {
	Alert, Expr, For string
	Labels           map[string]string
	Annotations      map[string]string
}

func read(t *testing.T, path string, into any) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return string(text)
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	read(t, "prometheus/rules.yaml", &file)
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) < 20 {
		t.Fatalf("there are %d alerts", len(all))
	}
	return all
}

// promtool runs promtool of Debian's package prometheus, which hack/real-nodes.sh installs.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no promtool, which hack/real-nodes.sh installs")
		}
		t.Skip("NOT RUN: there is no promtool. Install the package prometheus.")
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", arguments...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

// TestAlertsFireAndAreQuiet: each alert has a scenario in which it fires and one in which it does not, and promtool confirms both.
func TestAlertsFireAndAreQuiet(t *testing.T) {
	var file struct {
		Tests []struct {
			Name        string
			InputSeries []struct{ Series string } `json:"input_series"`
			Promql      []struct {
				Expr    string
				Samples []any `json:"exp_samples"`
			} `json:"promql_expr_test"`
		}
	}
	read(t, "prometheus/scenarios.yaml", &file)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, scenario := range file.Tests {
		alert := strings.Fields(scenario.Name)[0]
		if len(scenario.InputSeries) == 0 || !strings.Contains(scenario.Promql[0].Expr, `alertname="`+alert+`"`) {
			t.Errorf("the scenario %q asks nothing of its alert", scenario.Name)
		}
		if len(scenario.Promql[0].Samples) > 0 {
			fires[alert] = true
		} else {
			quiet[alert] = true
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !quiet[a.Alert] {
			t.Errorf("%s: a scenario that fires: %v, one that does not: %v; want both", a.Alert, fires[a.Alert], quiet[a.Alert])
		}
	}
	promtool(t, "check", "rules", filepath.Join("prometheus", "rules.yaml"))
	promtool(t, "test", "rules", filepath.Join("prometheus", "scenarios.yaml"))
}

// TestEveryAlertSaysWhatToDo: in its annotations, and on the page that they name, which has a command.
func TestEveryAlertSaysWhatToDo(t *testing.T) {
	page := read(t, "../docs/alerts.md", nil)
	sections := map[string]string{}
	for _, section := range strings.Split(page, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name], _, _ = strings.Cut(text, "\n## ")
	}
	for _, a := range alerts(t) {
		text, found := sections[a.Alert]
		delete(sections, a.Alert)
		switch {
		case !found:
			t.Errorf("docs/alerts.md has no section %s", a.Alert)
		case !strings.Contains(strings.ToLower(text), a.Labels["severity"]+", after "+a.For):
			t.Errorf("%s: the page says another severity or time than %s, %s", a.Alert, a.Labels["severity"], a.For)
		case !strings.Contains(text, "kubectl") && !strings.Contains(text, "log of"):
			t.Errorf("%s: the page does not say what to do", a.Alert)
		}
		if a.For == "" || a.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s lacks a time, a summary or a severity", a.Alert)
		}
		if !strings.HasSuffix(a.Annotations["runbook_url"], "docs/alerts.md#"+strings.ToLower(a.Alert)) {
			t.Errorf("%s: its runbook is %s", a.Alert, a.Annotations["runbook_url"])
		}
	}
	for name := range sections {
		t.Errorf("docs/alerts.md has a section %s for no alert", name)
	}
}

var (
	quotedText  = regexp.MustCompile(`"[^"]*"`)
	braces      = regexp.MustCompile(`\{[^}]*\}`)
	grouping    = regexp.MustCompile(`\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)`)
	identifiers = regexp.MustCompile(`\b[a-z_][a-z0-9_]*\b(\s*\()?`)
	ranges      = regexp.MustCompile(`\[[^\]]*\]`)
)

// metricsIn returns the metrics that an expression of PromQL reads.
func metricsIn(expression string) (out []string) {
	for _, noise := range []*regexp.Regexp{quotedText, braces, grouping, ranges} {
		expression = noise.ReplaceAllString(expression, " ")
	}
	for _, found := range identifiers.FindAllString(expression, -1) {
		if strings.HasSuffix(found, "(") || slices.Contains([]string{"and", "or", "unless", "bool", "offset"}, strings.TrimSpace(found)) {
			continue
		}
		out = append(out, found)
	}
	return out
}

// checkMetrics fails for metrics that the page of metrics does not have.
func checkMetrics(t *testing.T, what, expression string) {
	t.Helper()
	page := read(t, "../docs/metrics.md", nil)
	used := metricsIn(expression)
	if len(used) == 0 {
		t.Errorf("%s reads no metric", what)
	}
	for _, metric := range used {
		base := metric
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if !strings.Contains(page, "`"+metric+"`") && !strings.Contains(page, "`"+base+"` | histogram") {
			t.Errorf("%s reads %s, which docs/metrics.md does not have", what, metric)
		}
	}
}

// TestAlertsReadMetricsThatThereAre: a metric that an alert reads is in docs/metrics.md.
func TestAlertsReadMetricsThatThereAre(t *testing.T) {
	for _, a := range alerts(t) {
		checkMetrics(t, a.Alert, a.Expr)
	}
	for expression, want := range map[string]string{
		`sum by (name) (rate(a_total{x="b_total"}[5m])) > 0 and on (c) d_up`: "a_total d_up",
		`absent(kruise_x) or max(kruise_y == 0)`:                             "kruise_x kruise_y",
	} {
		if got := strings.Join(metricsIn(expression), " "); got != want {
			t.Errorf("%s reads %s, want %s", expression, got, want)
		}
	}
}

// TestAlertsKnowTheWebhooks: those about webhooks mean each of ours, and none of others.
func TestAlertsKnowTheWebhooks(t *testing.T) {
	matcher := regexp.MustCompile(`name=~"([^"]+kb\[\.\]io)"`)
	var patterns []*regexp.Regexp
	for _, a := range alerts(t) {
		for _, found := range matcher.FindAllStringSubmatch(a.Expr, -1) {
			patterns = append(patterns, regexp.MustCompile("^(?:"+found[1]+")$"))
		}
	}
	if len(patterns) < 3 {
		t.Fatalf("%d alerts are about webhooks", len(patterns))
	}
	names := 0
	for _, folder := range []string{"../config/webhook/manifests.yaml", "../config/rollouts/webhook/*.yaml"} {
		files, err := filepath.Glob(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, name := range regexp.MustCompile(`[a-z]+(\.rollouts)?\.kb\.io`).FindAllString(read(t, file, nil), -1) {
				names++
				for _, p := range patterns {
					if !p.MatchString(name) {
						t.Errorf("no alert is about the webhook %s", name)
					}
				}
			}
		}
	}
	if names < 30 {
		t.Errorf("only %d webhooks were found", names)
	}
	for _, p := range patterns {
		if p.MatchString("mpod.example.com") || p.MatchString("vcertificate.kb.io") {
			t.Error("an alert is about webhooks of others")
		}
	}
}
