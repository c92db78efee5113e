package proxy

import (
	"bufio"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// line is an event as it came, and when.
type line struct {
	text []byte
	came time.Time
}

// stream passes the events of a watch on.
func (p *Proxy) stream(w http.ResponseWriter, r *http.Request, answer *http.Response, asked *Request) {
	for key, values := range answer.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.StatusCode)
	flush(w)
	lines := make(chan line, 10000)
	go func() {
		defer close(lines)
		events := bufio.NewReaderSize(answer.Body, 1<<16)
		for {
			text, err := events.ReadBytes('\n')
			if err != nil {
				return // the watch has ended
			}
			select {
			case lines <- line{text, time.Now()}:
			case <-r.Context().Done():
				return
			}
		}
	}()
	for next := range lines {
		cut, goesOn := p.delayEvent(r, asked, next.came)
		if !goesOn {
			return
		}
		if cut {
			panic(http.ErrAbortHandler)
		}
		if _, err := w.Write(next.text); err != nil {
			return
		}
		flush(w)
		p.record.note(asked.Kind(), next.text)
	}
}

// delayEvent holds an event of a watch back for as long as the rules say, and reports whether the watch is cut instead, and whether the
// client is still there.
func (p *Proxy) delayEvent(r *http.Request, asked *Request, came time.Time) (cut, goesOn bool) {
	for {
		var hold time.Duration
		var changed <-chan struct{}
		p.mu.Lock()
		for i := range p.rules {
			rule := &p.rules[i]
			if !rule.isOfEvents() || !rule.concerns(asked) {
				continue
			}
			hold = max(hold, rule.Hold)
			cut = cut || rule.Cut && p.rand.Float64() < rule.Share
		}
		changed = p.changed
		p.mu.Unlock()
		wait := time.Until(came.Add(hold))
		if cut || wait <= 0 {
			return cut, true
		}
		select {
		case <-r.Context().Done():
			return false, false
		case <-changed:
		case <-time.After(wait):
			return false, true
		}
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// note notes what an event has shown.
func (r *Record) note(resource string, text []byte) {
	var event struct {
		Type   string `json:"type"`
		Object struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		} `json:"object"`
	}
	if json.Unmarshal(text, &event) == nil && event.Type != "ERROR" {
		if version := number(event.Object.Metadata.ResourceVersion); version > 0 {
			r.show(resource, version)
		}
	}
}
