package rollout

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

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

// Reasons of the condition Progressing. Those that name the kind are "<kind>Available", "<kind>Paused" and "<kind>Updated".
const (
	// partitionAvailable means that as many Pods as the partition allows are updated and available.
	partitionAvailable = "ProgressPartitionAvailable"
	// deadlineExceeded means that there was no progress for as long as the user is willing to wait.
	deadlineExceeded = "ProgressDeadlineExceeded"
)

// Progress is what is seen of a rollout.
type Progress struct {
	// Complete means that all Pods are updated and available, and Reached that all Pods are that the partition allows.
	Complete, Reached bool
	// Moved means that the numbers of the status show progress since they were last written, and Restarted that they were those of another
	// update revision.
	Moved, Restarted bool
}

// Beyond reports whether a rollout has made progress since the numbers were those before.
func (c Counts) Beyond(before Counts) bool {
	return c.Revision != before.Revision || c.Updated > before.Updated || c.Ready > before.Ready ||
		c.UpdatedReady > before.UpdatedReady || c.UpdatedAvailable > before.UpdatedAvailable
}

// Progressing returns the condition Progressing after the one written last, and the time until it changes by itself; zero when it does not.
//
// The time without progress runs from the condition's last update: at another reason, a new revision, or more Pods that are updated or
// ready. So neither a pause nor a partition that is reached counts against the deadline. Once it is exceeded, progress does not take that
// back: whoever looks only now and then would miss that the rollout was late. Its end does, a pause, or another template.
func (w *Workload) Progressing(p Progress, last Condition) (Condition, time.Duration) {
	if w.DeadlineSeconds == nil || *w.DeadlineSeconds == math.MaxInt32 {
		return Condition{Type: typeProgressing}, 0
	}
	kind := w.Kind.Kind
	updated := kind + "Updated"
	now := Condition{Type: typeProgressing, Status: corev1.ConditionTrue, LastUpdate: metav1.NewTime(w.Now)}
	var wait time.Duration
	switch {
	case p.Complete:
		now.Reason, now.Message = kind+"Available", kind+" is available"
	case w.Paused:
		now.Reason, now.Message = kind+"Paused", kind+" is paused"
	case p.Reached:
		now.Reason, now.Message = partitionAvailable, kind+" has been paused due to partition ready"
	case p.Restarted || last.Reason != deadlineExceeded && (p.Moved || last.Reason != updated):
		now.Reason, now.Message = updated, kind+" is progressing"
		return now, w.untilDeadline(w.Now)
	default:
		now.Reason, now.Message, wait = updated, kind+" is progressing", w.untilDeadline(last.LastUpdate.Time)
		if wait == 0 || last.Reason == deadlineExceeded {
			now.Status, now.Reason, wait = corev1.ConditionFalse, deadlineExceeded, 0
			now.Message = fmt.Sprintf("%s revision %s has timed out progressing", kind, w.History.Update.Name)
		}
	}
	if now.Status == last.Status && now.Reason == last.Reason {
		return last, wait
	}
	return now, wait
}

// untilDeadline returns the time until the deadline, and a second more so that the next pass is late enough; zero when it is over.
func (w *Workload) untilDeadline(since time.Time) time.Duration {
	left := since.Add(time.Duration(*w.DeadlineSeconds) * time.Second).Sub(w.Now)
	if left < 0 {
		return 0
	}
	return left + time.Second
}
