package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// server is an API server of few words, and what it was asked.
type server struct {
	*httptest.Server
	asked  []string
	events chan string
}

func newServer(t *testing.T) *server {
	s := &server{events: make(chan string, 10)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, `{"kind":"Pod","metadata":{"resourceVersion":"7","uid":"u"}}`)
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case event := <-s.events:
				_, _ = io.WriteString(w, event+"\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// client asks through a proxy.
type client struct {
	t    *testing.T
	http *http.Client
	url  string
}

func newProxy(t *testing.T) (*server, *Proxy, client) {
	t.Helper()
	s := newServer(t)
	p, err := New(&rest.Config{Host: s.URL}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	reached, err := rest.HTTPClientFor(p.Config("token"))
	if err != nil {
		t.Fatal(err)
	}
	return s, p, client{t, reached, p.server.URL}
}

func (c client) ask(ctx context.Context, method, path string) (*http.Response, error) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(""))
	if err != nil {
		c.t.Fatal(err)
	}
	return c.http.Do(r)
}

func TestRequestsAreDescribed(t *testing.T) {
	for asked, want := range map[string]Request{
		"GET /api/v1/pods?limit=1&resourceVersion=0":                {Verb: "list", Resource: "pods", Limit: "1", Version: "0"},
		"GET /api/v1/pods?watch=true&sendInitialEvents=true":        {Verb: "watch", Resource: "pods", InitialEvents: true},
		"GET /api/v1/namespaces/a/pods/b":                           {Verb: "get", Resource: "pods", Namespace: "a", Name: "b"},
		"PATCH /api/v1/namespaces/a/pods/b/status":                  {Verb: "patch", Resource: "pods/status", Namespace: "a", Name: "b"},
		"POST /apis/apps.kruise.io/v1beta1/namespaces/a/clonesets":  {Verb: "create", Group: "apps.kruise.io", Resource: "clonesets", Namespace: "a"},
		"PUT /apis/apps.kruise.io/v1beta1/namespaces/a/clonesets/b": {Verb: "update", Group: "apps.kruise.io", Resource: "clonesets", Namespace: "a", Name: "b"},
		"DELETE /api/v1/namespaces/a/pods":                          {Verb: "deletecollection", Resource: "pods", Namespace: "a"},
		"GET /api/v1/namespaces/a":                                  {Verb: "get", Resource: "namespaces", Name: "a"},
		"GET /readyz":                                               {Verb: "get", Resource: "/readyz"},
		"GET /apis/apps.kruise.io/v1beta1":                          {Verb: "get", Resource: "/apis/apps.kruise.io/v1beta1"},
	} {
		t.Run(asked, func(t *testing.T) {
			method, path, _ := strings.Cut(asked, " ")
			got := *describe(httptest.NewRequest(method, path, http.NoBody))
			got.At = time.Time{}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	const pod = "/api/v1/namespaces/a/pods/b"
	for name, tc := range map[string]struct {
		rule   Rule
		method string
		path   string
		// code is what the client is told, 0 for nothing, asked how often the API server is asked, and wrote what the record says of it.
		code, asked int
		wrote       int64
		retryAfter  string
		takes       time.Duration
	}{
		"nothing":                        {method: "PUT", path: pod, code: 200, asked: 1, wrote: 7},
		"a refusal":                      {rule: Rule{Share: 1, Code: 503}, method: "PUT", path: pod, code: 503},
		"a refusal with a time":          {rule: Rule{Share: 1, Code: 429, RetryAfter: 3 * time.Second}, method: "PUT", path: pod, code: 429, retryAfter: "3"},
		"an answer that is lost":         {rule: Rule{Share: 1, Lost: true}, method: "PUT", path: pod, asked: 1, wrote: 7},
		"a delay":                        {rule: Rule{Share: 1, Delay: 100 * time.Millisecond}, method: "PUT", path: pod, code: 200, asked: 1, wrote: 7, takes: 100 * time.Millisecond},
		"another verb":                   {rule: Rule{Share: 1, Code: 503, Verbs: []string{"get"}}, method: "PUT", path: pod, code: 200, asked: 1, wrote: 7},
		"another resource":               {rule: Rule{Share: 1, Code: 503, Resources: []string{"nodes"}}, method: "PUT", path: pod, code: 200, asked: 1, wrote: 7},
		"work, but not an access review": {rule: Rule{Share: 1, Code: 503, Resources: []string{"*"}}, method: "POST", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", code: 200, asked: 1, wrote: 7},
		"work":                           {rule: Rule{Share: 1, Code: 503, Resources: []string{"*"}}, method: "PUT", path: pod, code: 503},
		"none of them":                   {rule: Rule{Share: 0, Code: 503}, method: "PUT", path: pod, code: 200, asked: 1, wrote: 7},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, c := newProxy(t)
			p.Set(tc.rule)
			began := time.Now()
			answer, err := c.ask(t.Context(), tc.method, tc.path)
			code, retryAfter := 0, ""
			if err == nil {
				code, retryAfter = answer.StatusCode, answer.Header.Get("Retry-After")
				_ = answer.Body.Close()
			}
			recorded := p.Record().Requests(began)
			if code != tc.code || retryAfter != tc.retryAfter || len(s.asked) != tc.asked || len(recorded) != 1 ||
				recorded[0].Wrote != tc.wrote || time.Since(began) < tc.takes {
				t.Errorf("answer %d %q %v after %s, server asked %q, record %+v", code, retryAfter, err, time.Since(began), s.asked, recorded)
			}
		})
	}
}

// watch begins to watch Pods, and returns what reads the version of the next event.
func (c client) watch() func() (string, error) {
	c.t.Helper()
	answer, err := c.ask(c.t.Context(), "GET", "/api/v1/pods?watch=true")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = answer.Body.Close() })
	events := json.NewDecoder(answer.Body)
	return func() (string, error) {
		var event struct {
			Object struct {
				Metadata struct{ ResourceVersion string }
			}
		}
		err := events.Decode(&event)
		return event.Object.Metadata.ResourceVersion, err
	}
}

func TestEventsAreHeldBackUntilTheRulesChange(t *testing.T) {
	s, p, c := newProxy(t)
	next := c.watch()
	s.events <- `{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"}}}`
	if version, err := next(); version != "11" || err != nil {
		t.Fatalf("the first event is of version %q, error %v", version, err)
	}
	p.Set(Rule{Verbs: []string{"watch"}, Resources: []string{"pods"}, Hold: time.Hour})
	s.events <- `{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"12"}}}`
	time.Sleep(100 * time.Millisecond)
	held := time.Now()
	if got := p.Record().Seen(held)["pods"]; got != 11 {
		t.Errorf("while events are held back, Pods are shown up to %d, want 11", got)
	}
	p.Set()
	if version, err := next(); version != "12" || err != nil {
		t.Fatalf("the second event is of version %q, error %v", version, err)
	}
	for got := p.Record().Seen(time.Now())["pods"]; got != 12; got = p.Record().Seen(time.Now())["pods"] {
		time.Sleep(time.Millisecond) // it is noted when it was written
	}
	if got := p.Record().Seen(held)["pods"]; got != 11 {
		t.Errorf("at that time, Pods were shown up to %d, want 11", got)
	}
	p.Record().Started()
	if got := p.Record().Seen(time.Now()); len(got) != 0 {
		t.Errorf("a client that has just started has been shown %v", got)
	}
}

func TestAWatchIsCut(t *testing.T) {
	s, p, c := newProxy(t)
	next := c.watch()
	p.Set(Rule{Verbs: []string{"watch"}, Share: 1, Cut: true})
	s.events <- `{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"}}}`
	if version, err := next(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the watch goes on with version %q, error %v; want a broken connection", version, err)
	}
}
