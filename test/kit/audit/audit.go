// Package audit counts what one client asked of the API server, by the server's own audit log.
package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Query says whose requests are counted.
type Query struct {
	// Agent is the client's name, the part of its user agent before the slash.
	Agent string
	// Namespace of the requests; empty for all of them.
	Namespace string
	// From and To bound the time at which requests came in; zero for no bound.
	From, To time.Time
}

// Requests is what a client asked. Watches and leases are left out: they do not depend on the work.
type Requests struct {
	// Counts is the number of requests by verb, resource and the answer's code, such as "patch pods/status 200".
	Counts map[string]int
	// PodWrites counts the writes of Pods and their subresources, Reads all gets and lists, Conflicts the answers 409.
	PodWrites, Reads, Conflicts int
}

// entry is what a line of the audit log is read for.
type entry struct {
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	UserAgent string    `json:"userAgent"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	ObjectRef struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	User struct {
		Name  string              `json:"username"`
		Extra map[string][]string `json:"extra"`
	} `json:"user"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Read counts the requests in an audit log.
func Read(file string, q Query) (Requests, error) {
	out := Requests{Counts: map[string]int{}}
	err := each(file, func(e entry) {
		if q.matches(e) {
			out.add(e)
		}
	})
	return out, err
}

// each calls a function for each request in an audit log that was answered.
func each(file string, use func(entry)) error {
	return every(file, func(e entry) {
		if e.Stage == "ResponseComplete" {
			use(e)
		}
	})
}

// every calls a function for each line of an audit log.
func every(file string, use func(entry)) error {
	log, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // it was only read
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the last line may be half written
		}
		use(e)
	}
	return lines.Err()
}

func (q Query) matches(e entry) bool {
	return strings.HasPrefix(e.UserAgent, q.Agent+"/") && e.Verb != "watch" && e.ObjectRef.Resource != "leases" &&
		(q.Namespace == "" || e.ObjectRef.Namespace == q.Namespace) &&
		!e.Received.Before(q.From) && (q.To.IsZero() || !e.Received.After(q.To))
}

func (r *Requests) add(e entry) {
	r.Counts[fmt.Sprintf("%s %s %d", e.Verb, e.resource(), e.ResponseStatus.Code)]++
	if e.ResponseStatus.Code == 409 {
		r.Conflicts++
	}
	switch e.Verb {
	case "get", "list":
		r.Reads++
	default:
		if e.ObjectRef.Resource == "pods" {
			r.PodWrites++
		}
	}
}

// Writes counts all writes but those of events, and of questions that are asked by a create and store nothing, as access reviews are.
func (r Requests) Writes() int {
	n := 0
	for key, count := range r.Counts {
		verb, rest, _ := strings.Cut(key, " ")
		if verb != "get" && verb != "list" && !strings.HasPrefix(rest, "events") && !strings.Contains(rest, "accessreviews ") {
			n += count
		}
	}
	return n
}
