package trace

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

func TestClient(t *testing.T) {
	for name, tc := range map[string]struct {
		// answers are the codes of the collector, the last one for all further requests.
		answers []int
		headers string
		asked   int
		failure string
	}{
		"it takes them":               {[]int{200}, "", 1, ""},
		"with headers":                {[]int{200}, "authorization=Bearer%20x, other=1", 1, ""},
		"it takes them later":         {[]int{503, 200}, "", 2, ""},
		"it takes them after a pause": {[]int{429, 200}, "", 2, ""},
		"it never does":               {[]int{400}, "", 1, "400 Bad Request: no"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				code := tc.answers[min(asked, len(tc.answers)-1)]
				asked++
				if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
					t.Errorf("it is asked for %s with %v", r.URL, r.Header)
				}
				if tc.headers != "" && (r.Header.Get("Authorization") != "Bearer x" || r.Header.Get("Other") != "1") {
					t.Errorf("the headers are %v", r.Header)
				}
				w.WriteHeader(code)
				if code != http.StatusOK {
					_, _ = w.Write([]byte("no")) // the client says what it read
				}
			}))
			defer server.Close()
			c, err := newClient(server.URL, tc.headers)
			if err != nil {
				t.Fatal(err)
			}
			err = c.UploadTraces(t.Context(), []*tracepb.ResourceSpans{{}})
			if asked != tc.asked || (err == nil) != (tc.failure == "") || err != nil && !strings.Contains(err.Error(), tc.failure) {
				t.Errorf("it was asked %d times, want %d; %v, want %q", asked, tc.asked, err, tc.failure)
			}
		})
	}
}

// TestNoCollector checks that nobody waits longer for a collector than the context says.
func TestNoCollector(t *testing.T) {
	c, err := newClient("http://127.0.0.1:1/other", "")
	if err != nil || c.url != "http://127.0.0.1:1/other" {
		t.Fatal(c, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.UploadTraces(ctx, nil); err == nil || !strings.Contains(err.Error(), "reaching the collector") {
		t.Errorf("it says %v", err)
	}
	if _, err := newClient("http://x", "token"); err == nil {
		t.Error("a header without a value is taken")
	}
}
