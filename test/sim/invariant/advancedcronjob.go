package invariant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/cron"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The rules that CheckAdvancedCronJob knows.
const (
	RuleSlotOnce   = "no second job for a slot"
	RuleForward    = "no slot before the last one"
	RuleLatest     = "a job is for the latest slot that has passed"
	RuleForbid     = "no job beside one that is under way, where that is forbidden or replaced"
	RuleDeadline   = "no job for a slot that is too long ago"
	RuleCronPaused = "no job while making them is paused"
)

// crons is the history of AdvancedCronJobs and their jobs up to a change.
type crons struct {
	jobs       map[types.UID]*cronHistory
	violations []Violation
}

// cronHistory is what happened to one AdvancedCronJob, and the jobs that it has.
type cronHistory struct {
	versions []dated[*v1beta1.AdvancedCronJob]
	// made are the slots that a job was made for.
	made map[int64]bool
	jobs map[simulate.Key]client.Object
	// late are the revisions at which jobs were made that the controller had given up.
	late map[simulate.Key]int64
}

// couldKnow reports whether a pass could know of a job.
func (h *cronHistory) couldKnow(pass *simulate.Pass, job simulate.Key) bool {
	made, late := h.late[job]
	return !late || pass.Seen[job.Kind] >= made
}

// now returns the AdvancedCronJob as it is, or as it was when it went.
func (h *cronHistory) now() *v1beta1.AdvancedCronJob {
	for _, version := range slices.Backward(h.versions) {
		if version.object != nil {
			return version.object
		}
	}
	return nil
}

// CheckAdvancedCronJob returns the promises that an AdvancedCronJob controller has broken in a history.
func CheckAdvancedCronJob(history []simulate.Change) []Violation {
	k := &crons{jobs: map[types.UID]*cronHistory{}}
	for _, c := range history {
		switch object := eitherOf(c); c.Key.Kind.Kind {
		case "AdvancedCronJob":
			k.record(c)
		default:
			if owner := metav1.GetControllerOfNoCopy(object); owner != nil && k.jobs[owner.UID] != nil {
				k.recordJob(c, k.jobs[owner.UID])
			}
		}
	}
	return k.violations
}

func (k *crons) breaks(rule string, c simulate.Change, format string, args ...any) {
	k.violations = append(k.violations, Violation{Rule: rule, Revision: c.Revision, Text: fmt.Sprintf(format, args...)})
}

func (k *crons) record(c simulate.Change) {
	uid := eitherOf(c).GetUID()
	if k.jobs[uid] == nil {
		k.jobs[uid] = &cronHistory{made: map[int64]bool{}, jobs: map[simulate.Key]client.Object{}, late: map[simulate.Key]int64{}}
	}
	after, exists := c.After.(*v1beta1.AdvancedCronJob)
	k.jobs[uid].versions = append(k.jobs[uid].versions, dated[*v1beta1.AdvancedCronJob]{c.Revision, c.Time, c.Pass, c.Late, after})
	before, existed := c.Before.(*v1beta1.AdvancedCronJob)
	if !existed || !exists || before.Status.LastScheduleTime == nil {
		return
	}
	if last := after.Status.LastScheduleTime; last == nil || last.Before(before.Status.LastScheduleTime) {
		k.breaks(RuleForward, c, "the last slot goes from %s to %s", before.Status.LastScheduleTime, last)
	}
}

func (k *crons) recordJob(c simulate.Change, h *cronHistory) {
	if c.Before == nil && c.Pass != nil && !c.Late {
		k.judge(c, h)
	}
	if c.Before == nil && c.Late {
		h.late[c.Key] = c.Revision
	}
	if c.After == nil {
		delete(h.jobs, c.Key)
	} else {
		h.jobs[c.Key] = c.After
	}
}

// judge checks the making of a job.
func (k *crons) judge(c simulate.Change, h *cronHistory) {
	job := at(h.versions, c.Pass.Seen[v1beta1.GroupVersion.WithKind("AdvancedCronJob")])
	slot, err := time.Parse(time.RFC3339, c.After.GetAnnotations()[keys.ScheduledAt])
	if job == nil || err != nil {
		k.breaks(RuleLatest, c, "job %s was made for nobody: %v", c.Key.Name, err)
		return
	}
	// A controller that died in the very moment of making a job can't know that it was made when it is gone before anybody looks: its name
	// is still without a UID.
	if h.made[slot.Unix()] && !isNamed(job, c.Key.Name) {
		k.breaks(RuleSlotOnce, c, "job %s", c.Key.Name)
	}
	h.made[slot.Unix()] = true
	if last := h.now().Status.LastScheduleTime; last == nil || !last.Time.Equal(slot) {
		k.breaks(RuleForward, c, "job %s is not for the last slot that was written down, %s", c.Key.Name, last)
	}
	if want := fmt.Sprintf("%s-%d", job.Name, slot.Unix()); c.Key.Name != want {
		k.breaks(RuleSlotOnce, c, "the job is called %s, want %s", c.Key.Name, want)
	}
	if job.Spec.Paused != nil && *job.Spec.Paused {
		k.breaks(RuleCronPaused, c, "job %s", c.Key.Name)
	}
	if deadline := job.Spec.StartingDeadlineSeconds; deadline != nil && c.Pass.Time.Sub(slot) > time.Duration(*deadline)*time.Second {
		k.breaks(RuleDeadline, c, "job %s is made %s after its slot", c.Key.Name, c.Pass.Time.Sub(slot))
	}
	k.judgeSlot(c, job, slot)
	if job.Spec.ConcurrencyPolicy == v1beta1.ForbidConcurrent || job.Spec.ConcurrencyPolicy == v1beta1.ReplaceConcurrent {
		for key, other := range h.jobs {
			if !hasFinished(other) && other.GetDeletionTimestamp() == nil && h.couldKnow(c.Pass, key) {
				k.breaks(RuleForbid, c, "job %s beside %s", c.Key.Name, key.Name)
			}
		}
	}
}

// judgeSlot checks that the slot is one of the schedule, if that is read off the clock, and that no later one has passed.
func (k *crons) judgeSlot(c simulate.Change, job *v1beta1.AdvancedCronJob, slot time.Time) {
	schedule, err := cron.Parse(job.Spec.Schedule, "")
	if err != nil {
		k.breaks(RuleLatest, c, "job %s, but the schedule is %q", c.Key.Name, job.Spec.Schedule)
		return
	}
	// A slot that was written down under an earlier schedule stays due.
	later := schedule.Since(slot, c.Pass.Time).Missed
	if !later.IsZero() {
		k.breaks(RuleLatest, c, "job %s is for %s, but %s has passed", c.Key.Name, slot, later)
	}
	if at := schedule.Since(slot.Add(-time.Second), slot).Missed; at.IsZero() && !strings.HasPrefix(job.Spec.Schedule, "@every") &&
		!isNamed(job, c.Key.Name) {
		k.breaks(RuleLatest, c, "job %s is for %s, which is no slot of %q", c.Key.Name, slot, job.Spec.Schedule)
	}
}

// isNamed reports whether a job was written down and nobody has seen it yet.
func isNamed(job *v1beta1.AdvancedCronJob, name string) bool {
	return job != nil &&
		slices.ContainsFunc(job.Status.Active, func(r corev1.ObjectReference) bool { return r.Name == name && r.UID == "" })
}

func hasFinished(object client.Object) bool {
	switch job := object.(type) {
	case *batchv1.Job:
		return len(job.Status.Conditions) > 0
	case *v1beta1.BroadcastJob:
		return len(job.Status.Conditions) > 0
	case *v1beta1.ImageListPullJob:
		return job.Status.CompletionTime != nil
	}
	return false
}

// CronConverged returns what an AdvancedCronJob at rest, whose jobs have all finished, has left undone.
func CronConverged(cluster *simulate.Cluster, job *v1beta1.AdvancedCronJob) []string {
	if job == nil {
		return []string{"the AdvancedCronJob is gone"}
	}
	var out []string
	if len(job.Status.Active) > 0 {
		out = append(out, fmt.Sprintf("jobs are said to be under way: %v", job.Status.Active))
	}
	n := 0
	for _, kind := range []string{"BroadcastJob", "ImageListPullJob"} {
		n += countControlled(cluster.Of(v1beta1.GroupVersion.WithKind(kind)), job)
	}
	n += countControlled(cluster.Of(batchv1.SchemeGroupVersion.WithKind("Job")), job)
	most := int32(0)
	for _, limit := range []struct {
		value     *int32
		otherwise int32
	}{{job.Spec.SuccessfulJobsHistoryLimit, 3}, {job.Spec.FailedJobsHistoryLimit, 1}} {
		if limit.value != nil {
			limit.otherwise = *limit.value
		}
		most += limit.otherwise
	}
	if n > int(most) {
		out = append(out, fmt.Sprintf("%d jobs are kept, the limits together are %d", n, most))
	}
	return out
}

func countControlled(objects []client.Object, owner metav1.Object) int {
	n := 0
	for _, object := range objects {
		if metav1.IsControlledBy(object, owner) {
			n++
		}
	}
	return n
}
