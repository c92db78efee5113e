// Package otlp is a collector of traces for tests: it takes spans by OTLP over HTTP, as those of production do, and keeps them.
package otlp

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it came in.
type Span struct {
	// Trace, ID and Parent are hexadecimal; Parent is empty for the root.
	Trace, ID, Parent, Name string
	Start, End              time.Time
	// Attributes are those of the span, and Resource those of the process, as texts.
	Attributes, Resource map[string]string
	// Failed is the message of a span that says that something failed.
	Failed string
}

// Collector keeps the spans that come in.
type Collector struct {
	server *httptest.Server

	mu    sync.Mutex
	spans []Span
}

// Start returns a collector that listens on a free port of this machine.
func Start() *Collector {
	c := &Collector{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", c.take)
	c.server = httptest.NewServer(mux)
	return c
}

// URL is where it takes spans.
func (c *Collector) URL() string { return c.server.URL }

// Stop ends it.
func (c *Collector) Stop() { c.server.Close() }

// take takes spans in.
func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var data trace.TracesData
	if err = errors.Join(err, proto.Unmarshal(body, &data)); err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, fmt.Sprintf("no OTLP: %v", err), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer, which says that all were taken
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range data.ResourceSpans {
		resource := texts(of.Resource.Attributes)
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, Span{
					Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
					Name:  s.Name,
					Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
					Attributes: texts(s.Attributes), Resource: resource, Failed: s.Status.GetMessage(),
				})
			}
		}
	}
}

func texts(attributes []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attributes {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.Key] = fmt.Sprint(v.IntValue)
		default:
			out[a.Key] = a.Value.String()
		}
	}
	return out
}

// Spans returns the spans that have come in whose attributes have these values, in the order in which they began; of
// those that began at once, the one that ended last comes first, and the root.
func (c *Collector) Spans(attributes map[string]string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.spans)
	out = slices.DeleteFunc(out, func(s Span) bool {
		for key, value := range attributes {
			if s.Attributes[key] != value {
				return true
			}
		}
		return false
	})
	slices.SortStableFunc(out, func(a, b Span) int {
		return cmp.Or(a.Start.Compare(b.Start), b.End.Compare(a.End), cmp.Compare(a.Parent, b.Parent))
	})
	return out
}

// Tree returns spans as lines of text, each below its parent and indented, siblings in the order in which they began. Those whose parent
// is not among them come first.
func Tree(spans []Span) []string {
	var out []string
	var add func(parent string, depth int)
	add = func(parent string, depth int) {
		for _, s := range spans {
			if s.Parent == parent {
				out = append(out, strings.Repeat("  ", depth)+s.Name)
				add(s.ID, depth+1)
			}
		}
	}
	known := map[string]bool{"": true}
	for _, s := range spans {
		known[s.ID] = true
	}
	for _, s := range spans {
		if !known[s.Parent] {
			known[s.Parent] = true
			out = append(out, "(a span that is not here)")
			add(s.Parent, 1)
		}
	}
	add("", 0)
	return out
}
