package lint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Severity is how grave a finding is. Wire: programs read it.
type Severity string

const (
	// Error is what the API server refuses.
	Error Severity = "error"
	// Warning is what the API server takes, and what may not do what its author expects.
	Warning Severity = "warning"
)

// Finding is what is to be said about a manifest.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Object   string   `json:"object,omitempty"`
	Severity Severity `json:"severity"`
	// Field is the path of the field; empty where the whole object is meant.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Result is what was found.
type Result struct {
	// Objects counts the objects that were looked at, Ours those of Kruise's kinds.
	Objects  int       `json:"objects"`
	Ours     int       `json:"ofKruise"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Options is what a check needs.
type Options struct {
	// Scheme has the types that webhooks read.
	Scheme *runtime.Scheme
	// Namespace is that of objects that name none.
	Namespace string
	Now       func() time.Time
}

// Check returns what is to be said about manifests.
func Check(ctx context.Context, manifests []Manifest, o Options) (Result, error) {
	all := files{scheme: o.Scheme}
	server, err := NewServer(&all, o.Now)
	if err != nil {
		return Result{}, err
	}
	for i := range manifests {
		if m := &manifests[i]; m.Unreadable == nil {
			if err := server.place(m.Object, o.Namespace); err != nil {
				return Result{}, err
			}
			all.objects = append(all.objects, m.Object)
		}
	}
	out := Result{Findings: []Finding{}}
	for _, m := range manifests {
		c := &check{Manifest: m, result: &out}
		if m.Unreadable != nil {
			c.add(Error, "", m.Unreadable.Error())
			continue
		}
		out.Objects++
		if server.Has(m.Object.GroupVersionKind().GroupKind()) {
			out.Ours++
			if err := c.asked(ctx, server); err != nil {
				return out, fmt.Errorf("%s, line %d: %w", m.File, m.Line, err)
			}
		}
		c.keys()
		c.references(all)
	}
	slices.SortStableFunc(out.Findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return out, nil
}

// place puts an object of a kind that has a namespace into one, as kubectl does. Of kinds that are not ours, none is known to be without
// one but those that name it.
func (s *Server) place(o *unstructured.Unstructured, namespace string) error {
	namespaced := o.GetKind() != "Namespace"
	if read, ours := s.kinds[o.GroupVersionKind().GroupKind()]; ours {
		d, err := read()
		if err != nil {
			return err
		}
		namespaced = d.versions[0].namespaced
	}
	if o.GetNamespace() == "" && namespaced {
		o.SetNamespace(cmp.Or(namespace, metav1.NamespaceDefault))
	}
	return nil
}

// check looks at one manifest.
type check struct {
	Manifest
	result *Result
}

func (c *check) add(how Severity, field, message string) {
	f := Finding{File: c.File, Line: c.Line, Severity: how, Field: field, Message: message}
	if c.Object != nil {
		f.Object = c.Object.GetKind() + " " + cmp.Or(c.Object.GetName(), c.Object.GetGenerateName())
	}
	if how == Error {
		c.result.Errors++
	} else {
		c.result.Warnings++
	}
	c.result.Findings = append(c.result.Findings, f)
}

func (c *check) warnf(field, format string, args ...any) {
	c.add(Warning, field, fmt.Sprintf(format, args...))
}

// asked adds what the API server would answer.
func (c *check) asked(ctx context.Context, server *Server) error {
	answer, err := server.Create(ctx, c.Object)
	if err != nil {
		return err
	}
	for _, path := range answer.Unknown {
		c.add(Error, path, "unknown field: correct its name, or take it out")
	}
	for _, text := range answer.Warnings {
		c.add(Warning, "", text)
	}
	causes := causesOf(answer)
	if answer.Refusal != nil && len(causes) == 0 { // a webhook that could not read the object: the schema names the field
		alone := *server
		alone.SchemaOnly = true
		if answer, err := alone.Create(ctx, c.Object); err == nil {
			causes = causesOf(answer)
		}
	}
	if answer.Refusal != nil && len(causes) == 0 {
		c.add(Error, "", answer.Refusal.Message)
	}
	for _, cause := range causes {
		if strings.Contains(cause.Message, rulesUnchecked) {
			continue // it says of which field no more than the others do
		}
		how := Error
		if dependsOnCluster(cause) {
			how = Warning
		}
		c.add(how, strings.TrimPrefix(strings.TrimPrefix(cause.Field, "<nil>"), "."), cause.Message)
	}
	return nil
}

func causesOf(a Answer) []metav1.StatusCause {
	if a.Refusal == nil || a.Refusal.Details == nil {
		return nil
	}
	return a.Refusal.Details.Causes
}

// dependsOnCluster reports whether a refusal goes by what no manifest tells: Pods that a CloneSet has, and flags of the managers.
func dependsOnCluster(cause metav1.StatusCause) bool {
	return strings.HasPrefix(cause.Field, "spec.scaleStrategy.podsToDelete") || strings.Contains(cause.Message, "feature-gate ") ||
		strings.Contains(cause.Message, "--resourcedistribution-kinds")
}
