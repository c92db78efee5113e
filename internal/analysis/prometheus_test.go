package analysis

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// realPrometheus starts a Prometheus that scrapes an application whose new version fails one request in four.
func realPrometheus(t *testing.T) (address string) {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil && os.Getenv("KRUISE_REAL_NODES") == "none" {
		t.Skip("there is no prometheus, and make test has said so")
	} else if err != nil {
		t.Fatalf("%v: apt-get install -y prometheus, or call hack/real-nodes.sh", err)
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "requests{version=\"v1\",code=\"200\"} 100\nrequests{version=\"v2\",code=\"200\"} 75\nrequests{version=\"v2\",code=\"500\"} 25\n")
	}))
	t.Cleanup(app.Close)
	dir := t.TempDir()
	config := fmt.Sprintf("scrape_configs:\n- {job_name: app, scrape_interval: 200ms, scrape_timeout: 200ms, static_configs: [{targets: [%q]}]}\n", strings.TrimPrefix(app.URL, "http://"))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	server := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+dir, "--web.listen-address="+port)
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return "http://" + port
}

func TestQueriesOfARealPrometheus(t *testing.T) {
	address := realPrometheus(t)
	ask := func(query string, success v1beta1.Comparison) (v1beta1.AnalysisPhase, string) {
		check := v1beta1.Check{Name: "errors", TimeoutSeconds: ptr.To[int32](5)}
		check.Prometheus = &v1beta1.PrometheusCheck{Address: address + "/", Query: query, Success: success}
		got := measured(t, Options{Addresses: local()}, check)
		return got.Phase, got.Value + got.Message
	}
	errors := func(version string) string {
		return fmt.Sprintf(`(sum(requests{version=%q,code="500"}) or vector(0)) / sum(requests{version=%q})`, version, version)
	}
	until := time.Now().Add(30 * time.Second)
	for phase := v1beta1.AnalysisInconclusive; phase == v1beta1.AnalysisInconclusive; phase, _ = ask(errors("v1"), "< 0.01") {
		if time.Now().After(until) {
			t.Fatal("Prometheus has no data")
		}
		time.Sleep(200 * time.Millisecond)
	}
	for name, tc := range map[string]struct {
		query   string
		success v1beta1.Comparison
		want    v1beta1.AnalysisPhase
		says    string
	}{
		"the old version":           {errors("v1"), "< 0.01", v1beta1.AnalysisSuccessful, "0"},
		"the new version":           {errors("v2"), "< 0.01", v1beta1.AnalysisFailed, "0.25"},
		"a scalar":                  {"1 + 1", "== 2", v1beta1.AnalysisSuccessful, "2"},
		"a version that is unknown": {`sum(requests{version="v3"})`, "< 1", v1beta1.AnalysisInconclusive, "0 results"},
		"several series":            {"requests", "< 1", v1beta1.AnalysisInconclusive, "3 results"},
		"nothing by nothing":        {"vector(0) / vector(0)", "< 1", v1beta1.AnalysisInconclusive, "NaN"},
		"a query that is none":      {"sum(", "< 1", v1beta1.AnalysisInconclusive, "status 400: the query failed"},
		"a range":                   {"requests[1m]", "< 1", v1beta1.AnalysisInconclusive, "matrix"},
	} {
		if phase, says := ask(tc.query, tc.success); phase != tc.want || !strings.Contains(says, tc.says) {
			t.Errorf("%s: %s %s, want %s %s", name, phase, says, tc.want, tc.says)
		}
	}
}
