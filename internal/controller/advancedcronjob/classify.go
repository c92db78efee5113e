package advancedcronjob

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/cron"
)

// State is a Snapshot, classified once for the plan and the status.
type State struct {
	Snapshot
	// kind is nil when the template makes nothing.
	kind *jobKind
	// children are the jobs, the oldest slot first.
	children []*child
	// last is the latest slot that a job was made for, or is to be made for; zero when there was none yet.
	last time.Time
	// pending means that the job of the last slot still has to be made.
	pending  bool
	schedule cron.Schedule
	// problem is why nothing can be made: what can't be read in the schedule.
	problem error
}

// child is a job.
type child struct {
	client.Object
	progress
	// slot is the time that it was made for; zero when it does not say.
	slot time.Time
}

// Classify returns the state of a snapshot.
func Classify(s Snapshot) State {
	v := State{Snapshot: s, kind: kindOf(&s.Cron.Spec.Template)}
	if v.kind == nil || s.Cron.DeletionTimestamp != nil {
		return v
	}
	if stored := s.Cron.Status.LastScheduleTime; stored != nil {
		v.last = stored.Time
	}
	for _, job := range s.Jobs {
		c := &child{Object: job, progress: v.kind.progressOf(job)}
		c.slot, _ = slotOf(job)
		if c.slot.After(v.last) {
			v.last = c.slot
		}
		v.children = append(v.children, c)
	}
	slices.SortFunc(v.children, func(a, b *child) int {
		return cmp.Or(a.slot.Compare(b.slot), cmp.Compare(a.GetName(), b.GetName()))
	})
	v.pending = v.isPending() && !v.isTooLate(v.last)
	zone := ""
	if s.Cron.Spec.TimeZone != nil {
		zone = *s.Cron.Spec.TimeZone
	}
	v.schedule, v.problem = cron.Parse(s.Cron.Spec.Schedule, zone)
	return v
}

// slotOf returns the time that a job was made for, if it says so.
func slotOf(job client.Object) (time.Time, bool) {
	slot, err := time.Parse(time.RFC3339, job.GetAnnotations()[keys.ScheduledAt])
	return slot, err == nil
}

// isPending reports whether the status names a job that was to be created for the last slot, and that no pass has seen.
func (v *State) isPending() bool {
	if v.last.IsZero() || v.Made == v.last.Unix() {
		return false
	}
	name := nameFor(v.Cron, v.last)
	return slices.ContainsFunc(v.Cron.Status.Active, func(r corev1.ObjectReference) bool { return r.Name == name && r.UID == "" }) &&
		!slices.ContainsFunc(v.children, func(c *child) bool { return c.GetName() == name })
}

// nameFor returns the name of the job of a slot.
//
// Wire: it is the same in every version, so that no slot gets a second job.
func nameFor(job *v1beta1.AdvancedCronJob, slot time.Time) string {
	return fmt.Sprintf("%s-%s", job.Name, strconv.FormatInt(slot.Unix(), 10))
}

// active returns the jobs that have not finished, including those that are being deleted.
func (v *State) active() []*child {
	var out []*child
	for _, c := range v.children {
		if !c.finished {
			out = append(out, c)
		}
	}
	return out
}

// due returns what the schedule says. A pending slot is due until a later one is.
func (v *State) due() cron.Due {
	after := v.last
	if after.IsZero() {
		after = v.Cron.CreationTimestamp.Time
	}
	due := v.schedule.Since(after, v.Now)
	if due.Missed.IsZero() && v.pending {
		due.Missed = v.last
	}
	return due
}

// isTooLate reports whether a slot is longer ago than the user would still have it made up for.
func (v *State) isTooLate(slot time.Time) bool {
	left, limited := plan.UntilDeadline(&metav1.Time{Time: slot}, v.Cron.Spec.StartingDeadlineSeconds, v.Now)
	return limited && left <= 0
}
