package imagelistpulljob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
	eventCreate       = "Successful create ImagePullJob"
	eventDelete       = "Successful delete ImagePullJob"
	eventFailedCreate = "FailedCreateImagePullJob"
)

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	List *v1beta1.ImageListPullJob
	// Jobs are those that the list controls.
	Jobs []*v1beta1.ImagePullJob
	Now  time.Time
}

// State is a Snapshot classified once, for the plan and the status.
type State struct {
	Snapshot
	// jobs are those that the list wants, by image; unwanted are all others that are not on their way out.
	jobs     map[string]*v1beta1.ImagePullJob
	unwanted []*v1beta1.ImagePullJob
}

// Classify tells the jobs that are wanted from those that are not.
func Classify(s Snapshot) State {
	v := State{Snapshot: s, jobs: map[string]*v1beta1.ImagePullJob{}}
	all := slices.Clone(s.Jobs)
	slices.SortFunc(all, func(a, b *v1beta1.ImagePullJob) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, job := range all {
		switch image := job.Spec.Image; {
		case job.DeletionTimestamp != nil:
		case v.jobs[image] == nil && slices.Contains(s.List.Spec.Images, image) && pull.IsChild(s.List, job):
			v.jobs[image] = job
		default:
			v.unwanted = append(v.unwanted, job)
		}
	}
	return v
}

// Plan decides the next step. It reads only the state and changes nothing.
func Plan(v State) plan.Plan {
	b := plan.For(fmt.Sprintf("ImageListPullJob %s/%s   images %d", v.List.Namespace, v.List.Name, len(v.List.Spec.Images)))
	switch {
	case v.List.DeletionTimestamp != nil:
		// The garbage collector takes the jobs along.
		return b.Plan()
	case v.List.Status.CompletionTime != nil:
		ttl := v.List.Spec.CompletionPolicy.TTLSecondsAfterFinished
		b.Expire(v.List, plan.TTL{Seconds: ttl, Finished: v.List.Status.CompletionTime, Now: v.Now})
		return b.Plan()
	}
	v.label(b)
	for _, job := range v.unwanted {
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Scale, Before: job, AnyVersion: true,
			What: "delete the job for " + job.Spec.Image, Why: "the list was changed",
			Event: eventDelete, EventMessage: job.Name,
		})
	}
	for _, image := range v.List.Spec.Images {
		if v.jobs[image] != nil {
			continue
		}
		job := pull.NewChild(v.List, image)
		b.Do(plan.Action{
			Verb: plan.Create, Concern: plan.Scale, After: job,
			What: "create the job for " + image, Why: "the image is on the list",
			Event: eventCreate, EventMessage: job.Name, FailedEvent: eventFailedCreate,
		})
	}
	return b.Plan()
}

// label notes at the list what its jobs are made from.
func (v *State) label(b *plan.Builder) {
	if !v.isUnlabelled() {
		return
	}
	after := v.List.DeepCopy()
	after.Labels = maps.Clone(after.Labels)
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	after.Labels[appsv1.ControllerRevisionHashLabelKey] = pull.TemplateHash(&v.List.Spec.ImagePullJobTemplate)
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Tidy, Before: v.List, After: after,
		What: "label the list", Why: "its jobs are made from something new",
	})
}

// isUnlabelled reports whether a list that goes on does not say what its jobs are made from now.
func (v *State) isUnlabelled() bool {
	return v.List.DeletionTimestamp == nil && v.List.Status.CompletionTime == nil &&
		v.List.Labels[appsv1.ControllerRevisionHashLabelKey] != pull.TemplateHash(&v.List.Spec.ImagePullJobTemplate)
}

// Status counts the jobs that were read. What was just asked for shows in the next pass.
func Status(v State, _ plan.Plan, _ apply.Outcome) v1beta1.ImageListPullJobStatus {
	s := *v.List.Status.DeepCopy()
	if v.List.DeletionTimestamp != nil || s.CompletionTime != nil || v.isUnlabelled() {
		return s // one without its label has just been written: the next pass judges what it is now
	}
	now := metav1.NewTime(v.Now)
	if s.StartTime == nil {
		s.StartTime = &now
	}
	s.Desired, s.Active, s.Completed, s.Succeeded, s.FailedImageStatuses = int32(len(v.List.Spec.Images)), 0, 0, 0, nil
	for _, image := range slices.Sorted(maps.Keys(v.jobs)) {
		job := v.jobs[image]
		if job.Status.Active > 0 {
			s.Active++
		}
		if isDone(job) {
			s.Completed++
			if job.Status.Succeeded == job.Status.Desired {
				s.Succeeded++
			}
		}
		if job.Status.Failed > 0 {
			s.FailedImageStatuses = append(s.FailedImageStatuses, &v1beta1.FailedImageStatus{
				ImagePullJob: job.Name, Name: image,
				Message: fmt.Sprintf("Please check for details which nodes failed by 'kubectl get ImagePullJob %s'.", job.Name),
			})
		}
	}
	if v.List.Spec.CompletionPolicy.Type != v1beta1.NeverComplete && s.Completed == s.Desired {
		s.CompletionTime = &now
	}
	return s
}

// isDone reports whether each node of a job has pulled or given up: for a job that never completes, in the round of the day.
func isDone(job *v1beta1.ImagePullJob) bool {
	if !pull.Repeats(job) {
		return job.Status.CompletionTime != nil
	}
	return job.Status.StartTime != nil && job.Status.Desired == job.Status.Succeeded+job.Status.Failed
}
