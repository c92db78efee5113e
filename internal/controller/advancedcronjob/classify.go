package advancedcronjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	deadline := v.Cron.Spec.StartingDeadlineSeconds
	return deadline != nil && !slot.After(v.Now.Add(-time.Duration(*deadline)*time.Second))
}

// jobKind is a kind of jobs that can be made.
type jobKind struct {
	name v1beta1.TemplateKind
	gvk  schema.GroupVersionKind
	// list returns an empty list.
	list func() client.ObjectList
	// make returns a job of the template, nil when that is of another kind.
	make func(*v1beta1.CronJobTemplate) plan.Object
	// progressOf returns how far a job has come.
	progressOf func(client.Object) progress
}

// progress is how far a job has come.
type progress struct {
	finished, succeeded bool
	// start is when it began; nil before.
	start *metav1.Time
}

// jobKinds returns the kinds in the order in which a template is looked through.
func jobKinds() []jobKind {
	return []jobKind{{
		name: v1beta1.JobTemplate,
		gvk:  batchv1.SchemeGroupVersion.WithKind("Job"),
		list: func() client.ObjectList { return &batchv1.JobList{} },
		make: func(t *v1beta1.CronJobTemplate) plan.Object {
			if t.JobTemplate == nil {
				return nil
			}
			return &batchv1.Job{ObjectMeta: described(&t.JobTemplate.ObjectMeta), Spec: *t.JobTemplate.Spec.DeepCopy()}
		},
		progressOf: func(object client.Object) progress {
			s := &object.(*batchv1.Job).Status
			return progressBy(s.StartTime, s.Conditions, func(c batchv1.JobCondition) (string, corev1.ConditionStatus) { return string(c.Type), c.Status })
		},
	}, {
		name: v1beta1.ImageListPullJobTemplate,
		gvk:  v1beta1.GroupVersion.WithKind("ImageListPullJob"),
		list: func() client.ObjectList { return &v1beta1.ImageListPullJobList{} },
		make: func(t *v1beta1.CronJobTemplate) plan.Object {
			if t.ImageListPullJobTemplate == nil {
				return nil
			}
			return &v1beta1.ImageListPullJob{ObjectMeta: described(&t.ImageListPullJobTemplate.ObjectMeta), Spec: *t.ImageListPullJobTemplate.Spec.DeepCopy()}
		},
		progressOf: func(object client.Object) progress {
			s := &object.(*v1beta1.ImageListPullJob).Status
			return progress{start: s.StartTime, finished: s.CompletionTime != nil, succeeded: s.CompletionTime != nil && s.Succeeded == s.Desired}
		},
	}, {
		name: v1beta1.BroadcastJobTemplate,
		gvk:  v1beta1.GroupVersion.WithKind("BroadcastJob"),
		list: func() client.ObjectList { return &v1beta1.BroadcastJobList{} },
		make: func(t *v1beta1.CronJobTemplate) plan.Object {
			if t.BroadcastJobTemplate == nil {
				return nil
			}
			return &v1beta1.BroadcastJob{ObjectMeta: described(&t.BroadcastJobTemplate.ObjectMeta), Spec: *t.BroadcastJobTemplate.Spec.DeepCopy()}
		},
		progressOf: func(object client.Object) progress {
			s := &object.(*v1beta1.BroadcastJob).Status
			return progressBy(s.StartTime, s.Conditions, func(c v1beta1.BroadcastJobCondition) (string, corev1.ConditionStatus) {
				return string(c.Type), c.Status
			})
		},
	}}
}

// progressBy returns how far a job has come whose condition Complete or Failed says that it has finished.
func progressBy[C any](start *metav1.Time, conditions []C, of func(C) (string, corev1.ConditionStatus)) progress {
	p := progress{start: start}
	for _, c := range conditions {
		if name, status := of(c); (name == conditionComplete || name == conditionFailed) && status == corev1.ConditionTrue {
			p.finished, p.succeeded = true, name == conditionComplete
		}
	}
	return p
}

// Conditions by which a Job, and a BroadcastJob, says that it is over.
const (
	conditionComplete = "Complete"
	conditionFailed   = "Failed"
)

// kindOf returns the kind of the jobs that the template makes, nil for none.
func kindOf(template *v1beta1.CronJobTemplate) *jobKind {
	for _, k := range jobKinds() {
		if k.make(template) != nil {
			return &k
		}
	}
	return nil
}

// described returns the metadata that jobs take over from their template.
func described(template *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations)}
}
