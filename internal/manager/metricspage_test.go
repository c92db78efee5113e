package manager

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seed-69ecc383/kruise/internal/admission/podbudget"
	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/admission/protection"
	"github.com/seed-69ecc383/kruise/internal/admission/server"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/rollout"
	"github.com/seed-69ecc383/kruise/internal/node/pull"
	"github.com/seed-69ecc383/kruise/internal/process"
	"github.com/seed-69ecc383/kruise/internal/spread"
	"github.com/seed-69ecc383/kruise/internal/statemetrics"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md")

const metricsPage = "../../docs/metrics.md"

// recorder is a registry that notes what is registered in it.
type recorder struct {
	*prometheus.Registry
	rows map[string]string
}

var descPattern = regexp.MustCompile(`fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"), constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}`)

func (r recorder) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() { c.Describe(descs); close(descs) }()
	for desc := range descs {
		found := descPattern.FindStringSubmatch(desc.String())
		if found == nil {
			return fmt.Errorf("a description of another form: %s", desc)
		}
		labels := strings.Split(found[3], ",")
		for i := range labels {
			labels[i] = "`" + labels[i] + "`"
		}
		if found[3] == "" {
			labels = nil
		}
		help := strings.ReplaceAll(strings.Trim(found[2], `"`), `\"`, `"`)
		r.rows[found[1]] = fmt.Sprintf("| %#q | %s | %s | %s |", found[1], typeOf(c), strings.Join(labels, ", "), help)
	}
	return r.Registry.Register(c)
}

func typeOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec, prometheus.Counter:
		if _, gauge := c.(prometheus.Gauge); gauge {
			return "gauge"
		}
		return "counter"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	}
	return "gauge"
}

// record returns the rows of the metrics that are registered meanwhile in the registry of the process.
func record(t *testing.T, register func(recorder) error) map[string]string {
	t.Helper()
	was := metrics.Registry
	r := recorder{prometheus.NewRegistry(), map[string]string{}}
	metrics.Registry = r
	defer func() { metrics.Registry = was }()
	if err := register(r); err != nil {
		t.Fatal(err)
	}
	return r.rows
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// registered returns the rows of all metrics, by the table of the page that they are in.
func registered(t *testing.T) map[string]map[string]string {
	t.Helper()
	both := record(t, func(recorder) error {
		webhooks := process.WebhookOptions{Host: "localhost", Port: "1"}
		_, err := webhooks.Server(server.Clients{}, webhooks.Serving())
		return first(err, apply.RegisterMetrics())
	})
	main := record(t, func(r recorder) error {
		_, err := spread.NewMetrics(r)
		_, other := pods.NewMetrics(r)
		_, budgets := podbudget.NewReports(podbudget.ReportOptions{Registry: r, Now: time.Now})
		_, protected := protection.NewReports(protection.ReportOptions{Registry: r, Now: time.Now})
		return first(err, other, budgets, protected, settings{}.tellLacking())
	})
	releases := record(t, func(recorder) error { _, err := rollout.NewMetrics(); return err })
	state := record(t, func(r recorder) error {
		var kinds []statemetrics.Kind
		for _, name := range slices.Sorted(maps.Keys(statemetrics.Apps())) {
			kinds = append(kinds, statemetrics.Apps()[name])
		}
		return r.Register(statemetrics.New(statemetrics.Options{}, append(kinds, statemetrics.Rollouts())...))
	})
	daemon := record(t, func(recorder) error { return pull.RegisterMetrics() })
	return map[string]map[string]string{"both": both, "manager": main, "rollouts": releases, "state": state, "daemon": daemon}
}

// TestThePageOfMetricsIsThatOfTheCode: docs/metrics.md has each metric that is registered, with its type, its labels and its help, and no
// other.
func TestThePageOfMetricsIsThatOfTheCode(t *testing.T) {
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, rows := range registered(t) {
		table := "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n"
		for _, metric := range slices.Sorted(maps.Keys(rows)) {
			table += rows[metric] + "\n"
		}
		begin := "<!-- metrics of " + name + " -->\n"
		before, rest, found := strings.Cut(page, begin)
		is, after, closed := strings.Cut(rest, "<!-- end -->")
		if !found || !closed {
			t.Fatalf("%s has no %s, or no end behind it", metricsPage, begin)
		}
		if is != table && !*update {
			t.Errorf("%s: the metrics of %s are others: call go test ./internal/manager -run %s -update", metricsPage, name, t.Name())
		}
		page = before + begin + table + "<!-- end -->" + after
	}
	if *update {
		if err := os.WriteFile(metricsPage, []byte(page), 0o644); err != nil { //nolint:gosec // for everybody to read
			t.Fatal(err)
		}
	}
}

// TestEveryLabelIsExplained: the page says of each label what its values are, and so how many.
func TestEveryLabelIsExplained(t *testing.T) {
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range registered(t) {
		for metric, row := range rows {
			for _, label := range regexp.MustCompile("`[a-z_]+`").FindAllString(strings.Split(row, "|")[3], -1) {
				if !strings.Contains(string(text), "\n| "+label+" | ") && !strings.Contains(string(text), ", "+label+" | ") &&
					!strings.Contains(string(text), label+", ") {
					t.Errorf("the page does not say what the values of label %s of %s are", label, metric)
				}
				if label == "`pod`" || label == "`container`" {
					t.Errorf("%s has a series for each %s", metric, label)
				}
			}
		}
	}
}

// TestEveryPackageWithMetricsIsLookedAt: a package that makes metrics is among those whose metrics the tests of the page see.
func TestEveryPackageWithMetricsIsLookedAt(t *testing.T) {
	seen := []string{
		"internal/admission/pods", "internal/admission/podbudget", "internal/admission/protection", "internal/admission/refusal",
		"internal/admission/server", "internal/apply", "internal/controller/rollout", "internal/manager", "internal/node/pull",
		"internal/process", "internal/spread", "internal/statemetrics",
	}
	err := filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		relative := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		if !strings.HasPrefix(relative, "internal/") && !strings.HasPrefix(relative, "cmd/") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imported := range file.Imports {
			if strings.HasPrefix(imported.Path.Value, `"github.com/prometheus/client_golang/`) && !slices.Contains(seen, filepath.ToSlash(filepath.Dir(relative))) {
				t.Errorf("%s makes metrics: have the test of the page register them, and add the package here", relative)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
