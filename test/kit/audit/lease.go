package audit

import (
	"slices"
	"strings"
	"time"
)

// Write is a write that the API server has carried out.
type Write struct {
	// At is when the request came in.
	At time.Time
	// Process is who asked for it, by the id of its token: of managers, each has its own.
	Process string
	// Verb and Resource are such as "patch" and "pods/status".
	Verb, Resource, Namespace, Name string
}

// Lease is a lease by which processes agree on who leads.
type Lease struct{ Namespace, Name string }

// AfterTakeover returns the writes that a process asked for although another one had taken over a lease that it once held, the oldest
// first. Events and questions that are asked by a create are left out, and so are refused writes. The log does not tell on which conditions
// a write was asked for: one that is bound to a version or to a UID does no harm whenever it comes, and the caller has to know which are.
func AfterTakeover(file string, lease Lease) ([]Write, error) {
	var takeovers, writes []Write
	if err := each(file, func(e entry) {
		w := Write{
			At: e.Received, Process: e.process(), Verb: e.Verb, Resource: e.resource(),
			Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		}
		switch {
		case !e.isWrite() || e.ResponseStatus.Code >= 400:
		case w.Resource == "leases":
			if w.Namespace == lease.Namespace && w.Name == lease.Name {
				takeovers = append(takeovers, w)
			}
		case w.Resource != "events" && !strings.HasSuffix(w.Resource, "reviews"):
			writes = append(writes, w)
		}
	}); err != nil {
		return nil, err
	}
	byTime := func(a, b Write) int { return a.At.Compare(b.At) }
	slices.SortFunc(takeovers, byTime)
	slices.SortFunc(writes, byTime)
	var out []Write
	held, holder, next := map[string]bool{}, "", 0
	for _, w := range writes {
		for ; next < len(takeovers) && !takeovers[next].At.After(w.At); next++ {
			holder = takeovers[next].Process
			held[holder] = true
		}
		if held[w.Process] && w.Process != holder {
			out = append(out, w)
		}
	}
	return out, nil
}

// credential is where the API server keeps the id of the token that a request came with.
const credential = "authentication.kubernetes.io/credential-id"

// process returns who asked, by the id of the token; empty where there is none.
func (e *entry) process() string { return strings.Join(e.User.Extra[credential], ",") }

func (e *entry) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

// resource returns the resource of a request, with its subresource.
func (e *entry) resource() string {
	if e.ObjectRef.Subresource == "" {
		return e.ObjectRef.Resource
	}
	return e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
}
