package imagelistpulljob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func list(change func(*v1beta1.ImageListPullJob)) *v1beta1.ImageListPullJob {
	l := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "list", UID: "u"}}
	l.Spec.Images = []string{"b", "a"}
	if change != nil {
		change(l)
	}
	l.Labels = map[string]string{"controller-revision-hash": pull.TemplateHash(&l.Spec.ImagePullJobTemplate)}
	return l
}

// jobs returns the jobs of a list, each for an image and with what has come of its two nodes: running, failed or succeeded.
func jobs(l *v1beta1.ImageListPullJob, texts ...string) []*v1beta1.ImagePullJob {
	var out []*v1beta1.ImagePullJob
	for i, text := range texts {
		image, state, _ := strings.Cut(text, " ")
		job := pull.NewChild(l, image)
		job.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(i) * time.Second))
		job.Status = v1beta1.ImagePullJobStatus{StartTime: &metav1.Time{Time: now}, Desired: 2, Active: 1}
		if state != "running" {
			job.Status = v1beta1.ImagePullJobStatus{StartTime: &metav1.Time{Time: now}, CompletionTime: &metav1.Time{Time: now}, Desired: 2, Succeeded: 2}
		}
		if state == "failed" {
			job.Status.Succeeded, job.Status.Failed = 1, 1
		}
		out = append(out, job)
	}
	return out
}

func TestPlan(t *testing.T) {
	l := list(nil)
	changed := list(func(l *v1beta1.ImageListPullJob) { l.Spec.ImagePullPolicy = v1beta1.PullAlways })
	unlabelled := list(nil)
	unlabelled.Labels = nil
	ended := func(ttl *int32) *v1beta1.ImageListPullJob {
		return list(func(l *v1beta1.ImageListPullJob) {
			l.Status.CompletionTime = &metav1.Time{Time: now.Add(-time.Minute)}
			l.Spec.CompletionPolicy.TTLSecondsAfterFinished = ttl
		})
	}
	ttl := int32(60)
	twice := jobs(l, "a running", "b running", "a running")
	twice[2].Name = "second"
	for name, tc := range map[string]struct {
		list *v1beta1.ImageListPullJob
		jobs []*v1beta1.ImagePullJob
		does string
	}{
		"no jobs yet":                  {l, nil, "create the job for b, create the job for a"},
		"all are there":                {l, jobs(l, "a running", "b succeeded"), ""},
		"one image was taken out":      {l, jobs(l, "a running", "b running", "c running"), "delete the job for c"},
		"the jobs' template changed":   {changed, jobs(l, "a running"), "delete the job for a, create the job for b, create the job for a"},
		"an image has two jobs":        {l, twice, "delete the job for a"},
		"a list that says nothing yet": {unlabelled, jobs(l, "a running", "b running"), "label the list"},
		"a list that has completed":    {ended(nil), nil, ""},
		"its time is up":               {ended(&ttl), nil, "delete"},
		"a list that is being deleted": {list(func(l *v1beta1.ImageListPullJob) { l.DeletionTimestamp = &metav1.Time{} }), nil, ""},
		"a job that is on its way out stays for nothing": {l, func() []*v1beta1.ImagePullJob {
			out := jobs(l, "a running", "b running")
			out[0].DeletionTimestamp = &metav1.Time{}
			return out
		}(), "create the job for a"},
	} {
		t.Run(name, func(t *testing.T) {
			var does []string
			for _, a := range Plan(Classify(Snapshot{List: tc.list, Jobs: tc.jobs, Now: now})).Actions() {
				does = append(does, a.What)
			}
			if got := strings.Join(does, ", "); got != tc.does {
				t.Errorf("does %q, want %q", got, tc.does)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	l := list(nil)
	never := list(func(l *v1beta1.ImageListPullJob) { l.Spec.CompletionPolicy.Type = v1beta1.NeverComplete })
	fresh := jobs(l, "a running", "b running")
	for _, job := range fresh {
		job.Status = v1beta1.ImagePullJobStatus{}
	}
	for name, tc := range map[string]struct {
		list   *v1beta1.ImageListPullJob
		jobs   []*v1beta1.ImagePullJob
		counts string // desired, active, completed, succeeded, over
		failed []string
	}{
		"no jobs yet":                         {l, nil, "2 0 0 0 false", nil},
		"jobs that nobody has looked at yet":  {l, fresh, "2 0 0 0 false", nil},
		"one runs, one has failed":            {l, jobs(l, "b failed", "a running"), "2 1 1 0 false", []string{"b"}},
		"all are over":                        {l, jobs(l, "b failed", "a failed"), "2 0 2 0 true", []string{"a", "b"}},
		"all have succeeded":                  {l, jobs(l, "a succeeded", "b succeeded"), "2 0 2 2 true", nil},
		"a list that never ends, for the day": {never, jobs(never, "a succeeded", "b succeeded"), "2 0 2 2 false", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := Status(Classify(Snapshot{List: tc.list, Jobs: tc.jobs, Now: now}), plan.Plan{}, apply.Outcome{})
			var failed []string
			for _, f := range s.FailedImageStatuses {
				failed = append(failed, f.Name)
			}
			if got := fmt.Sprint(s.Desired, s.Active, s.Completed, s.Succeeded, s.CompletionTime != nil); got != tc.counts {
				t.Errorf("status is %s, want %s", got, tc.counts)
			}
			if diff := cmp.Diff(tc.failed, failed); diff != "" {
				t.Errorf("failed images (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAListThatIsOverStaysOver: a status that arrives late, from a controller that has been replaced, must not have jobs made again.
func TestAListThatIsOverStaysOver(t *testing.T) {
	if !Kind().Exact {
		t.Error("a status is written over one that it was not judged from")
	}
	unlabelled := list(nil)
	unlabelled.Labels = nil
	v := Classify(Snapshot{List: unlabelled, Now: now})
	if diff := cmp.Diff(unlabelled.Status, Kind().Status(v, Plan(v), apply.Outcome{})); diff != "" {
		t.Errorf("a status is judged from a list that is written in the same pass (-want +got):\n%s", diff)
	}
	v = Classify(Snapshot{List: list(nil), Now: now})
	if Kind().Status(v, Plan(v), apply.Outcome{}).StartTime == nil {
		t.Error("the status is not reported")
	}
}
