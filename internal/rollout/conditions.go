package rollout

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

const typeProgressing = "Progressing"

// Condition is a condition of any workload. Each kind has a type of its own for them, which leaves something out.
type Condition struct {
	Type            string
	Status          corev1.ConditionStatus
	Reason, Message string
	// LastUpdate is when the condition last said something new.
	LastUpdate, LastTransition metav1.Time
}

// Conditions are the conditions of a status of one kind, with the two ways between its type and Condition.
type Conditions[C any] struct {
	List *[]C
	From func(C) Condition
	To   func(Condition) C
}

// Get returns the condition of a type; an empty one where there is none.
func (c Conditions[C]) Get(t string) Condition {
	for _, have := range *c.List {
		if one := c.From(have); one.Type == t {
			return one
		}
	}
	return Condition{}
}

// Set puts a condition into the status, and removes one without a status value. One that is not True is left out where it never was.
// The transition time changes with the status alone.
func (c Conditions[C]) Set(want Condition) {
	at := slices.IndexFunc(*c.List, func(have C) bool { return c.From(have).Type == want.Type })
	want.LastTransition = want.LastUpdate
	switch {
	case at < 0 && want.Status != corev1.ConditionTrue:
		return
	case at < 0:
		*c.List = append(*c.List, c.To(want))
		return
	case want.Status == "":
		*c.List = slices.Delete(*c.List, at, at+1)
		return
	}
	old := c.From((*c.List)[at])
	if old.Status == want.Status {
		want.LastTransition = old.LastTransition
		if want.Type != typeProgressing && old.Reason == want.Reason && old.Message == want.Message {
			want.LastUpdate = old.LastUpdate
		}
	}
	(*c.List)[at] = c.To(want)
}

// Failure returns the condition of a type that is True with a message, and False without one.
func (w *Workload) Failure(t, message string) Condition {
	c := Condition{Type: t, Status: corev1.ConditionFalse, Reason: "Succeeded", Message: message, LastUpdate: metav1.NewTime(w.Now)}
	if message != "" {
		c.Status, c.Reason = corev1.ConditionTrue, "Failed"
	}
	return c
}

// Failures returns what failed under a concern, in words; empty when nothing did.
func Failures(concern plan.Concern, p plan.Plan, done apply.Outcome) string {
	var failures []error
	for _, result := range done.Results {
		under := result.Action.Concern == concern || (concern == plan.Rollout && result.Action.Concern == plan.Settle)
		if under && apply.IsFailure(result.Err) {
			failures = append(failures, result.Err)
		}
	}
	for _, h := range p.Holds {
		if h.Failure == concern {
			failures = append(failures, errors.New(h.Why))
		}
	}
	const most = 3
	if len(failures) == 0 {
		return ""
	}
	return errors.Join(failures[:min(most, len(failures))]...).Error()
}
