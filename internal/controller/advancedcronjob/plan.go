package advancedcronjob

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/cron"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Event reasons, those of the CronJobs of Kubernetes. Wire: users' alerts and tools match them.
const (
	eventSuccessfulCreate = "SuccessfulCreate"
	eventFailedCreate     = "FailedCreate"
	eventSuccessfulDelete = "SuccessfulDelete"
	eventFailedDelete     = "FailedDelete"
	eventSawCompleted     = "SawCompletedJob"
	eventAlreadyActive    = "JobAlreadyActive"
	eventMissed           = "MissSchedule"
	eventTooManyMissed    = "TooManyMissedTimes"
	eventUnparseable      = "UnparseableSchedule"
	eventUnknownZone      = "UnknownTimeZone"
)

// How many finished jobs are kept where the user does not say.
const (
	keptSuccessful = 3
	keptFailed     = 1
)

// Plan decides the next step from the state alone.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	if v.kind == nil || v.Cron.DeletionTimestamp != nil {
		// The garbage collector takes the jobs along.
		return b.Plan()
	}
	v.tidy(b)
	slot := v.decide(b)
	actions := v.completions()
	if !slot.IsZero() {
		actions = append(actions, v.run(slot)...)
	}
	b.Do(actions...)
	return b.Plan()
}

func (v *State) summary() string {
	out := fmt.Sprintf("AdvancedCronJob %s/%s   schedule %q, jobs %d, active %d",
		v.Cron.Namespace, v.Cron.Name, v.Cron.Spec.Schedule, len(v.children), len(v.active()))
	if !v.last.IsZero() {
		out += ", last slot " + v.last.UTC().Format(time.RFC3339)
	}
	return out
}

// tidy deletes the oldest finished jobs beyond those that are to be kept.
func (v *State) tidy(b *plan.Builder) {
	spec := &v.Cron.Spec
	for _, history := range []struct {
		succeeded bool
		limit     *int32
		otherwise int32
	}{{true, spec.SuccessfulJobsHistoryLimit, keptSuccessful}, {false, spec.FailedJobsHistoryLimit, keptFailed}} {
		limit := history.otherwise
		if history.limit != nil {
			limit = *history.limit
		}
		var finished []*child
		for _, c := range v.children {
			if c.finished && c.succeeded == history.succeeded && c.GetDeletionTimestamp() == nil {
				finished = append(finished, c)
			}
		}
		slices.SortFunc(finished, older)
		for _, c := range finished[:max(0, len(finished)-int(limit))] {
			b.Do(remove(c, fmt.Sprintf("%d newer ones are kept", limit)))
		}
	}
}

// older puts jobs in the order of their start; those that never started come first.
func older(a, b *child) int {
	switch {
	case a.start == nil && b.start == nil:
		return cmp.Compare(a.GetName(), b.GetName())
	case a.start == nil:
		return -1
	case b.start == nil:
		return 1
	}
	return cmp.Or(a.start.Compare(b.start.Time), cmp.Compare(a.GetName(), b.GetName()))
}

func remove(c *child, why string) plan.Action {
	return plan.Action{
		Verb: plan.Delete, Concern: plan.Tidy, Before: c.Object, AnyVersion: true, What: "delete", Why: why,
		Event: eventSuccessfulDelete, EventMessage: "Deleted job " + c.GetName(), FailedEvent: eventFailedDelete,
	}
}

// decide returns the slot to create a job for now, zero for none, and holds back with the reason otherwise.
func (v *State) decide(b *plan.Builder) time.Time {
	switch {
	case errors.Is(v.problem, cron.ErrTimeZone):
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: v.problem.Error(), Event: eventUnknownZone})
		return time.Time{}
	case v.problem != nil:
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: v.problem.Error(), Event: eventUnparseable})
		return time.Time{}
	case v.Cron.Spec.Paused != nil && *v.Cron.Spec.Paused:
		return time.Time{}
	}
	due := v.due()
	if !due.Next.IsZero() {
		b.Recheck(due.Next.Sub(v.Now), "the next slot is "+due.Next.UTC().Format(time.RFC3339))
	}
	slot := due.Missed
	switch {
	case slot.IsZero():
		return slot
	case v.isTooLate(slot):
		b.Hold(plan.Hold{Code: reason.Nothing, Why: "Missed scheduled time to start a job: " + slot.UTC().Format(time.RFC1123Z),
			Event: eventMissed})
		return time.Time{}
	case v.Cron.Spec.ConcurrencyPolicy == v1beta1.ForbidConcurrent && len(v.active()) > 0:
		b.Hold(plan.Hold{
			Code:  reason.Held,
			Why:   "Not starting job because prior execution is running and concurrency policy is Forbid",
			Event: eventAlreadyActive, EventType: corev1.EventTypeNormal,
		})
		return time.Time{}
	}
	if due.Many {
		b.Hold(plan.Hold{
			Code: reason.Nothing, Why: fmt.Sprintf("too many missed start times: more than %d; the last one, %s, is made up for",
				cron.Many, slot.UTC().Format(time.RFC3339)),
			Event: eventTooManyMissed,
		})
	}
	return slot
}

// completions emits an event for each job that has finished since the last pass, with the write of the status that removes it from the
// active ones.
func (v *State) completions() []plan.Action {
	var out []plan.Action
	before, after := v.Cron, v.Cron.DeepCopy()
	after.Status = v.status()
	for _, c := range v.children {
		if !c.finished || !slices.ContainsFunc(v.Cron.Status.Active, func(r corev1.ObjectReference) bool {
			return r.UID == c.GetUID() || r.UID == "" && r.Name == c.GetName()
		}) {
			continue
		}
		outcome := conditionFailed
		if c.succeeded {
			outcome = conditionComplete
		}
		out = append(out, plan.Action{
			Verb: plan.UpdateStatus, Concern: plan.Tidy, Before: before, After: after, What: c.GetName() + " has finished", Why: outcome,
			Event: eventSawCompleted, EventMessage: fmt.Sprintf("Saw completed job: %s, condition: %s", c.GetName(), outcome),
		})
		before = after // the status is written once, the events come one by one
	}
	return out
}

// run creates the job of a slot: first the status names it, then the earlier jobs are deleted that it replaces, then it is created.
func (v *State) run(slot time.Time) []plan.Action {
	name := nameFor(v.Cron, slot)
	after := v.Cron.DeepCopy()
	after.Status = v.status()
	after.Status.LastScheduleTime = &metav1.Time{Time: slot}
	isPending := func(r corev1.ObjectReference) bool { return r.UID == "" }
	after.Status.Active = append(slices.DeleteFunc(after.Status.Active, isPending), v.reference(name))
	out := []plan.Action{{
		Verb: plan.UpdateStatus, Concern: plan.Tidy, Before: v.Cron, After: after,
		What: "write down slot " + slot.UTC().Format(time.RFC3339), Why: "its job comes next",
	}}
	if v.Cron.Spec.ConcurrencyPolicy == v1beta1.ReplaceConcurrent {
		for _, c := range v.active() {
			if c.GetDeletionTimestamp() == nil && c.GetName() != name {
				out = append(out, remove(c, "concurrencyPolicy is Replace, and "+name+" is due"))
			}
		}
	}
	job := v.kind.make(&v.Cron.Spec.Template)
	job.SetName(name)
	job.SetNamespace(v.Cron.Namespace)
	annotations := job.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[keys.ScheduledAt] = slot.UTC().Format(time.RFC3339)
	job.SetAnnotations(annotations)
	job.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(v.Cron, kind())})
	return append(out, plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: job,
		What: "make a " + string(v.kind.name), Why: "slot " + slot.UTC().Format(time.RFC3339) + " is due",
		Event: eventSuccessfulCreate, EventMessage: "Created job " + name, FailedEvent: eventFailedCreate,
	})
}
