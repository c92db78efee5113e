package manager

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/internal/clock"
	"github.com/seed-69ecc383/kruise/internal/process"
)

// TestTheAPIServersClockCounts: whatever the manager reads sets the clock.
func TestTheAPIServersClockCounts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	const text = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: URL}}]}"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "URL", server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	by := clock.New(logr.Discard())
	config, err := process.RestConfig(path, UserAgent, by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Pods("n").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Fatal("the server was not asked")
	}
	if behind := time.Until(by.Now()); behind < -time.Hour-5*time.Second || behind > -time.Hour+5*time.Second {
		t.Errorf("by the manager's clock it is %s from now, want an hour ago", behind)
	}
}
