package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// requests is what one process asked of the API server.
type requests struct {
	counts    map[string]int
	podWrites int
	reads     int
	conflicts int
}

// entry is what a line of the audit log is read for.
type entry struct {
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	UserAgent string    `json:"userAgent"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// readAudit counts the requests of a process within a time; in one namespace, or in all for an empty name. Watches and leases are left out:
// they do not depend on the work.
func readAudit(file, agent, namespace string, from, to time.Time) (requests, error) {
	out := requests{counts: map[string]int{}}
	log, err := os.Open(file)
	if err != nil {
		return out, err
	}
	defer func() { _ = log.Close() }() // it was only read
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the last line may be half written
		}
		if e.Stage == "ResponseComplete" && strings.HasPrefix(e.UserAgent, agent+"/") && e.counts(namespace, from, to) {
			out.add(e)
		}
	}
	return out, lines.Err()
}

func (e entry) counts(namespace string, from, to time.Time) bool {
	return (namespace == "" || e.ObjectRef.Namespace == namespace) && e.Verb != "watch" && e.ObjectRef.Resource != "leases" &&
		!e.Received.Before(from) && !e.Received.After(to)
}

func (r *requests) add(e entry) {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	r.counts[fmt.Sprintf("%s %s %d", e.Verb, resource, e.ResponseStatus.Code)]++
	if e.ResponseStatus.Code == 409 {
		r.conflicts++
	}
	switch e.Verb {
	case "get", "list":
		r.reads++
	default:
		if e.ObjectRef.Resource == "pods" {
			r.podWrites++
		}
	}
}

// writes counts all writes but those of events.
func (r *requests) writes() int {
	n := 0
	for key, count := range r.counts {
		verb, rest, _ := strings.Cut(key, " ")
		if verb != "get" && verb != "list" && !strings.HasPrefix(rest, "events") {
			n += count
		}
	}
	return n
}
