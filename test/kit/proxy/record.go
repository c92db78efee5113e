package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// Request is what a client asked for.
type Request struct {
	// At is when it came, and Done when it was answered.
	At, Done time.Time
	// Verb is one of Kubernetes'. Resource is of the form "pods" or "pods/status". A request for no resource has its path.
	Verb, Resource, Namespace, Name string
	// Group is that of the resource; empty for the core.
	Group string
	// Version is the resource version that a list or a watch asks for; InitialEvents means that a watch begins with all objects.
	Version       string
	InitialEvents bool
	// Limit is that of a list.
	Limit string
	Agent string
	// Fault names the rule that concerned it; empty for none.
	Fault string
	// Code is that of the answer; 0 for none.
	Code int
	// Wrote is what a write has made: the version and the UID of the object. The version is zero where the answer does not tell it.
	Wrote    int64
	WroteUID types.UID
}

// describe reads a request.
func describe(r *http.Request) *Request {
	query := r.URL.Query()
	out := &Request{
		At: time.Now(), Verb: strings.ToLower(r.Method), Resource: r.URL.Path, Agent: r.UserAgent(),
		Version: query.Get("resourceVersion"), InitialEvents: query.Get("sendInitialEvents") == "true", Limit: query.Get("limit"),
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		out.Group, parts = parts[1], parts[3:]
	default:
		return out
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		out.Namespace, parts = parts[1], parts[2:]
	}
	out.Resource = parts[0]
	if len(parts) > 1 {
		out.Name = parts[1]
	}
	if len(parts) > 2 {
		out.Resource += "/" + strings.Join(parts[2:], "/")
	}
	switch {
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		out.Verb = "watch"
	case r.Method == http.MethodGet && out.Name == "":
		out.Verb = "list"
	case r.Method == http.MethodPost:
		out.Verb = "create"
	case r.Method == http.MethodPut:
		out.Verb = "update"
	case r.Method == http.MethodDelete && out.Name == "":
		out.Verb = "deletecollection"
	}
	return out
}

// Kind returns what the record knows the resource by: its name, and its group after a dot unless that is the core.
func (r *Request) Kind() string {
	resource, _, _ := strings.Cut(r.Resource, "/")
	if r.Group == "" {
		return resource
	}
	return resource + "." + r.Group
}

// IsWork reports whether a request is about objects, and not about who leads or who may do what.
func (r *Request) IsWork() bool {
	return !strings.HasPrefix(r.Resource, "/") && r.Resource != "leases" && !strings.HasSuffix(r.Resource, "reviews")
}

// IsWrite reports whether a request asks for a change.
func (r *Request) IsWrite() bool { return slices.Contains(Writes(), r.Verb) }

// shown is that a client was shown a resource up to a version.
type shown struct {
	at       time.Time
	resource string
	version  int64
}

// Record is what was asked and answered, and what watches and lists have shown.
type Record struct {
	mu       sync.Mutex
	requests []*Request
	shown    []shown
	started  []time.Time
}

func newRecord() *Record { return &Record{} }

// entry is a request that is being answered.
type entry struct{ *Request }

func (r *Record) begin(asked *Request) entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, asked)
	return entry{asked}
}

// end notes the answer.
func (e entry) end(r *Record, code int, body []byte) {
	var object struct {
		Metadata metav1.ObjectMeta     `json:"metadata"`
		Details  *metav1.StatusDetails `json:"details"`
	}
	if body != nil && (e.IsWrite() || e.Verb == "list") {
		_ = json.Unmarshal(body, &object) // what is no object has no version
	}
	version := number(object.Metadata.ResourceVersion)
	r.mu.Lock()
	e.Done, e.Code = time.Now(), code
	if e.IsWrite() && code < http.StatusBadRequest {
		e.Wrote, e.WroteUID = version, object.Metadata.UID
		if object.Details != nil && e.WroteUID == "" {
			e.WroteUID = object.Details.UID
		}
	}
	r.mu.Unlock()
	if e.Verb == "list" && version > 0 && e.Limit == "" { // a part of the objects is not what there is
		r.show(e.Kind(), version)
	}
}

func number(version string) int64 {
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (r *Record) show(resource string, version int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = append(r.shown, shown{time.Now(), resource, version})
}

// Started notes that the client begins anew, with nothing that it was shown before.
func (r *Record) Started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = append(r.started, time.Now())
}

// Requests returns copies of those that came from a time on, the oldest first.
func (r *Record) Requests(from time.Time) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Request
	for _, asked := range r.requests {
		if !asked.At.Before(from) {
			out = append(out, *asked)
		}
	}
	return out
}

// Seen returns up to which version the client had been shown each resource, by Kind, at a time, since it was started last.
func (r *Record) Seen(at time.Time) map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var since time.Time
	for _, started := range r.started {
		if !started.After(at) {
			since = started
		}
	}
	out := map[string]int64{}
	for _, s := range r.shown {
		if s.at.After(at) {
			break
		}
		if !s.at.Before(since) {
			out[s.resource] = max(out[s.resource], s.version)
		}
	}
	return out
}
