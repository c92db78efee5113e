package ephemeraljob

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
)

const jobUID types.UID = "job-uid"

func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func ptr[T any](v T) *T { return &v }

// jobWith returns a job for all Pods of the label app=web, two at a time, that was started a minute ago.
func jobWith(changes ...func(*v1alpha1.EphemeralJob)) *v1alpha1.EphemeralJob {
	job := &v1alpha1.EphemeralJob{
		ObjectMeta: metav1.ObjectMeta{Name: "shell", Namespace: "default", UID: jobUID},
		Spec: v1alpha1.EphemeralJobSpec{
			Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Parallelism: ptr[int32](2),
			Template: v1alpha1.EphemeralContainerTemplateSpec{EphemeralContainers: []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "shell", Image: "busybox:1"}},
			}},
		},
		Status: v1alpha1.EphemeralJobStatus{StartTime: &metav1.Time{Time: start()}},
	}
	for _, change := range changes {
		change(job)
	}
	return job
}

// fleet returns Pods a, b, c ... by words: new, pending (without a node), waiting, running, done, failed, foreign (somebody else's container of that
// name), gone (deleted), and over (the Pod has ended). Each is a second younger than the one before.
func fleet(t *testing.T, words string) []*corev1.Pod {
	t.Helper()
	var out []*corev1.Pod
	for i, word := range strings.Fields(words) {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: string(rune('a' + i)), Namespace: "default", UID: types.UID(fmt.Sprint("uid-", i)), Labels: map[string]string{"app": "web"},
				CreationTimestamp: metav1.NewTime(start().Add(time.Duration(i) * time.Second)),
			},
			Spec:   corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "app"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		out = append(out, shaped(t, p, word))
	}
	return out
}

func shaped(t *testing.T, p *corev1.Pod, word string) *corev1.Pod {
	t.Helper()
	switch word {
	case "new":
		return p
	case "pending":
		p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		return p
	case "gone":
		p.DeletionTimestamp = &metav1.Time{Time: start()}
		return p
	case "over":
		p.Status.Phase = corev1.PodSucceeded
		return p
	case "foreign":
		p.Spec.EphemeralContainers = jobWith().Spec.Template.EphemeralContainers
		return p
	}
	p = ephemeral.Into(p, jobWith().Spec.Template.EphemeralContainers, jobUID)
	states := map[string]corev1.ContainerState{
		"waiting": {},
		"running": {Running: &corev1.ContainerStateRunning{}},
		"done":    {Terminated: &corev1.ContainerStateTerminated{}},
		"failed":  {Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	}
	state, ok := states[word]
	if !ok {
		t.Fatalf("there is no Pod that is %s", word)
	}
	p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "shell", State: state}}
	return p
}

// told returns the status in one line, and its conditions but the first in one line each.
func told(s v1alpha1.EphemeralJobStatus) string {
	out := fmt.Sprintf("%s: match %d, waiting %d, running %d, succeeded %d, failed %d", s.Phase, s.Match, s.Waiting, s.Running, s.Succeeded, s.Failed)
	if s.CompletionTime != nil {
		out += fmt.Sprintf(", over after %s", s.CompletionTime.Sub(s.StartTime.Time))
	}
	for i, c := range s.Conditions {
		if i > 0 {
			out += fmt.Sprintf("\n%s %s: %s", c.Type, c.Reason, c.Message)
		}
	}
	return out
}

func TestPlan(t *testing.T) {
	type change = func(*v1alpha1.EphemeralJob)
	paused := func(job *v1alpha1.EphemeralJob) { job.Spec.Paused = true }
	replicas := func(n int32) change { return func(job *v1alpha1.EphemeralJob) { job.Spec.Replicas = &n } }
	deadline := func(seconds int64) change {
		return func(job *v1alpha1.EphemeralJob) { job.Spec.ActiveDeadlineSeconds = &seconds }
	}
	for name, tc := range map[string]struct {
		pods   string
		change change
		after  time.Duration
		plan   string
		status string
	}{
		"a new job adds to as many Pods as parallelism says, the oldest first": {
			pods: "new new new", plan: "update a add shell; update b add shell; hold 1 Pod wait: parallelism 2 is used up",
			status: "Waiting: match 3, waiting 0, running 0, succeeded 0, failed 0",
		},
		"Pods whose container waits count as well as those where it runs": {
			pods: "waiting running new", plan: "hold 1 Pod wait: parallelism 2 is used up", status: "Running: match 3, waiting 1, running 1, succeeded 0, failed 0",
		},
		"one by one when nothing is said": {
			pods: "new new", change: func(job *v1alpha1.EphemeralJob) { job.Spec.Parallelism = nil },
			plan: "update a add shell; hold 1 Pod wait: parallelism 1 is used up", status: "Waiting: match 2, waiting 0, running 0, succeeded 0, failed 0",
		},
		"no parallelism, no containers": {
			pods: "new", change: func(job *v1alpha1.EphemeralJob) { job.Spec.Parallelism = ptr[int32](0) },
			plan: "hold 1 Pod wait: parallelism 0 is used up", status: "Waiting: match 1, waiting 0, running 0, succeeded 0, failed 0",
		},
		"who is done makes room": {
			pods: "done failed running new", plan: "update d add shell", status: "Running: match 4, waiting 0, running 1, succeeded 1, failed 1",
		},
		"between two Pods it is running, and not unknown": {
			pods: "done new", plan: "update b add shell", status: "Running: match 2, waiting 0, running 0, succeeded 1, failed 0",
		},
		"all wait": {
			pods: "waiting waiting", plan: "", status: "Waiting: match 2, waiting 2, running 0, succeeded 0, failed 0",
		},
		"no Pods": {
			plan: "", status: "Waiting: match 0, waiting 0, running 0, succeeded 0, failed 0\nMatchedEmpty MatchEmpty: job match no pods",
		},
		"only so many Pods": {
			pods: "new new new", change: replicas(1), plan: "update a add shell", status: "Waiting: match 1, waiting 0, running 0, succeeded 0, failed 0",
		},
		"those that have the containers are the first of so many Pods": {
			pods: "new done running", change: replicas(2), plan: "", status: "Running: match 2, waiting 0, running 1, succeeded 1, failed 0",
		},
		"fewer Pods than have the containers already": {
			pods: "running running new", change: replicas(1), plan: "", status: "Running: match 2, waiting 0, running 2, succeeded 0, failed 0",
		},
		"more Pods than there are": {
			pods: "done done", change: replicas(10), plan: "update shell Succeeded",
			status: "Succeeded: match 2, waiting 0, running 0, succeeded 2, failed 0, over after 1m0s\nJobSucceeded JobSucceeded: 2 Pods succeeded",
		},
		"no Pods wanted": {
			pods: "new", change: replicas(0), plan: "", status: "Waiting: match 0, waiting 0, running 0, succeeded 0, failed 0\nMatchedEmpty MatchEmpty: job match no pods",
		},
		"Pods with a node come before older ones without": {
			pods: "pending new new", change: replicas(2), plan: "update b add shell; update c add shell", status: "Waiting: match 2, waiting 0, running 0, succeeded 0, failed 0",
		},
		"a Pod without a node takes no other's turn": {
			pods: "pending done", plan: "hold a it has no node yet", status: "Running: match 2, waiting 0, running 0, succeeded 1, failed 0",
		},
		"Pods that go or have ended are left alone": {
			pods: "gone over new", plan: "update c add shell", status: "Waiting: match 1, waiting 0, running 0, succeeded 0, failed 0",
		},
		"Pods that have somebody else's container of that name": {
			pods: "foreign new", plan: "update b add shell; hold 1 Pod can't take the containers: a (it has a container shell already)",
			status: "Waiting: match 1, waiting 0, running 0, succeeded 0, failed 0",
		},
		"no Pod can take the containers": {
			pods: "foreign foreign foreign foreign",
			plan: "hold 4 Pods can't take the containers: a (it has a container shell already), b (it has a container shell already), c (it has a container shell already) and 1 more",
			status: "Waiting: match 0, waiting 0, running 0, succeeded 0, failed 0\nMatchedEmpty MatchEmpty: job match no pods: 4 Pods can't take the containers: " +
				"a (it has a container shell already), b (it has a container shell already), c (it has a container shell already) and 1 more",
		},
		"a paused job adds nothing": {
			pods: "new new", change: paused, plan: "hold 2 Pods wait: the job is paused", status: "Paused: match 2, waiting 0, running 0, succeeded 0, failed 0",
		},
		"paused while something runs": {
			pods: "running new", change: paused, plan: "hold 1 Pod wait: the job is paused", status: "Running: match 2, waiting 0, running 1, succeeded 0, failed 0",
		},
		"paused when all have the containers": {
			pods: "waiting", change: paused, plan: "", status: "Waiting: match 1, waiting 1, running 0, succeeded 0, failed 0",
		},
		"paused when all is done": {
			pods: "done", change: paused, plan: "update shell Succeeded",
			status: "Succeeded: match 1, waiting 0, running 0, succeeded 1, failed 0, over after 1m0s\nJobSucceeded JobSucceeded: 1 Pod succeeded",
		},
		"one has failed and all have ended": {
			pods: "done failed done", plan: "update shell Failed",
			status: "Failed: match 3, waiting 0, running 0, succeeded 2, failed 1, over after 1m0s\nJobFailed JobFailed: 1 of 3 Pods failed: b (shell exited with code 1)",
		},
		"all have failed": {
			pods: "failed failed", plan: "update shell Failed",
			status: "Failed: match 2, waiting 0, running 0, succeeded 0, failed 2, over after 1m0s\nJobFailed JobFailed: 2 of 2 Pods failed: a (shell exited with code 1), b (shell exited with code 1)",
		},
		"a deadline to come": {
			pods: "running new", change: deadline(70), plan: "update b add shell; recheck in 10s", status: "Running: match 2, waiting 0, running 1, succeeded 0, failed 0",
		},
		"the deadline": {
			pods: "running done new", change: deadline(60), plan: "update shell Failed",
			status: "Failed: match 3, waiting 0, running 1, succeeded 1, failed 0, over after 1m0s\n" +
				"JobFailed DeadlineExceeded: Job default/shell was active longer than specified deadline; its containers run on in 1 Pod until they end or their Pods do",
		},
		"the deadline of a job without Pods": {
			change: deadline(60), plan: "update shell Failed",
			status: "Failed: match 0, waiting 0, running 0, succeeded 0, failed 0, over after 1m0s\nJobFailed DeadlineExceeded: Job default/shell was active longer than specified deadline",
		},
		"the deadline in a pause": {
			pods: "new", change: func(job *v1alpha1.EphemeralJob) { paused(job); deadline(5)(job) }, plan: "update shell Failed",
			status: "Failed: match 1, waiting 0, running 0, succeeded 0, failed 0, over after 1m0s\nJobFailed DeadlineExceeded: Job default/shell was active longer than specified deadline",
		},
		"all have ended when the deadline passes": {
			pods: "done", change: deadline(60), plan: "update shell Succeeded",
			status: "Succeeded: match 1, waiting 0, running 0, succeeded 1, failed 0, over after 1m0s\nJobSucceeded JobSucceeded: 1 Pod succeeded",
		},
		"an empty template": {
			pods: "new", change: func(job *v1alpha1.EphemeralJob) { job.Spec.Template.EphemeralContainers = nil }, plan: "problem template has no ephemeralContainers: add one",
			status: "Error: match 0, waiting 0, running 0, succeeded 0, failed 0\nJobError InvalidSpec: template has no ephemeralContainers: add one",
		},
		"an empty selector": {
			pods: "new", change: func(job *v1alpha1.EphemeralJob) { job.Spec.Selector = &metav1.LabelSelector{} }, plan: "problem selector is empty: name the labels of the Pods",
			status: "Error: match 0, waiting 0, running 0, succeeded 0, failed 0\nJobError InvalidSpec: selector is empty: name the labels of the Pods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobWith()
			if tc.change != nil {
				tc.change(job)
			}
			v := Classify(Snapshot{Job: job, Pods: fleet(t, tc.pods), Now: start().Add(time.Minute)})
			p := Plan(v)
			if diff := cmp.Diff(tc.plan, brief(p.String())); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.status, told(v.status(""))); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// brief returns the lines of a printed plan but the first, without the reasons of what is done.
func brief(printed string) string {
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(printed), "\n")[1:] {
		text := strings.Join(strings.Fields(line), " ")
		text, _, _ = strings.Cut(text, " the job is for this Pod")
		for _, cut := range []string{"Succeeded", "Failed", "in 10s"} {
			if before, _, ok := strings.Cut(text, cut); ok {
				text = before + cut
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestAJobThatIsOver(t *testing.T) {
	finished := func(ttl *int32) *v1alpha1.EphemeralJob {
		return jobWith(func(job *v1alpha1.EphemeralJob) {
			job.Spec.TTLSecondsAfterFinished = ttl
			job.Status.Phase, job.Status.Match, job.Status.Succeeded = v1alpha1.EphemeralJobSucceeded, 3, 3
			job.Status.CompletionTime = &metav1.Time{Time: start()}
		})
	}
	unfinished := finished(ptr[int32](50))
	unfinished.Status.CompletionTime = nil
	unfinished.Status.Conditions = []v1alpha1.EphemeralJobCondition{{Type: v1alpha1.EphemeralJobIsFailed, LastTransitionTime: metav1.NewTime(start().Add(30 * time.Second))}}
	deleted := finished(nil)
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: start()}, []string{keys.EphemeralContainersCleanup, "other"}
	released := deleted.DeepCopy()
	released.Finalizers = []string{"other"}
	for name, tc := range map[string]struct {
		job  *v1alpha1.EphemeralJob
		plan string
		wait time.Duration
	}{
		"it is kept for its time to live":                     {finished(ptr[int32](100)), "recheck in 40s ttlSecondsAfterFinished 100", 40 * time.Second},
		"half an hour when nothing is said":                   {finished(nil), "recheck in 29m0s ttlSecondsAfterFinished 1800", 29 * time.Minute},
		"it is deleted after that":                            {finished(ptr[int32](60)), "delete shell delete ttlSecondsAfterFinished 60", 0},
		"at once with no time to live":                        {finished(ptr[int32](0)), "delete shell delete ttlSecondsAfterFinished 0", 0},
		"an older controller did not note when it ended":      {unfinished, "recheck in 20s ttlSecondsAfterFinished 50", 20 * time.Second},
		"nothing is cleaned up when it is deleted":            {deleted, "update shell remove the finalizer the job is deleted, and the containers stay in their Pods", 0},
		"and nothing at all without an old finalizer of ours": {released, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := Classify(Snapshot{Job: tc.job, Now: start().Add(time.Minute), Pods: fleet(t, "failed new")})
			p := Plan(v)
			if diff := cmp.Diff(tc.plan, brief(p.String())); diff != "" || p.Recheck != tc.wait {
				t.Errorf("recheck in %s, plan (-want +got):\n%s", p.Recheck, diff)
			}
			if diff := cmp.Diff(tc.job.Status, Status(v, p, apply.Outcome{})); diff != "" {
				t.Errorf("its status changes:\n%s", diff)
			}
		})
	}
	v := Classify(Snapshot{Job: deleted, Now: start()})
	if diff := cmp.Diff([]string{"other"}, Plan(v).Actions()[0].After.GetFinalizers()); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}

// TestRefusals: a Pod that was not let have the containers is left alone for a moment, others get their turn, and the job says why until it has worked.
func TestRefusals(t *testing.T) {
	job := jobWith(func(job *v1alpha1.EphemeralJob) {
		job.Spec.Replicas, job.Spec.Parallelism = ptr[int32](1), ptr[int32](1)
	})
	now := start().Add(time.Minute)
	v := Classify(Snapshot{Job: job, Pods: fleet(t, "new new"), Now: now})
	first := Plan(v).Actions()[0]
	no := fmt.Errorf("adding containers to a: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("a policy says no")))
	status := Status(v, Plan(v), apply.Outcome{Results: []apply.Result{{Action: first, Err: no}}})
	want := "Waiting: match 1, waiting 0, running 0, succeeded 0, failed 0\nJobFailed CreateFailed: adding containers to a: pods \"a\" is forbidden: a policy says no"
	if diff := cmp.Diff(want, told(status)); diff != "" {
		t.Errorf("status after a refusal (-want +got):\n%s", diff)
	}

	job.Status = status
	refused := map[types.UID]time.Time{"uid-0": now.Add(10 * time.Second)}
	v = Classify(Snapshot{Job: job, Pods: fleet(t, "new new"), Now: now, Refused: refused})
	if diff := cmp.Diff("update b add shell", brief(Plan(v).String())); diff != "" {
		t.Errorf("with another Pod (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("Waiting: match 1, waiting 0, running 0, succeeded 0, failed 0", told(Status(v, Plan(v), apply.Outcome{}))); diff != "" {
		t.Errorf("its status (-want +got):\n%s", diff)
	}

	v = Classify(Snapshot{Job: job, Pods: fleet(t, "new"), Now: now, Refused: refused})
	if diff := cmp.Diff("hold a it was not let have the containers; recheck in 10s", brief(Plan(v).String())); diff != "" {
		t.Errorf("with no other Pod (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, told(Status(v, Plan(v), apply.Outcome{}))); diff != "" {
		t.Errorf("its status (-want +got):\n%s", diff)
	}

	timeout := apply.Outcome{Results: []apply.Result{{Action: first, Err: apierrors.NewTimeoutError("slow", 1)}}}
	v = Classify(Snapshot{Job: jobWith(), Pods: fleet(t, "new"), Now: now})
	if s := Status(v, Plan(v), timeout); len(s.Conditions) != 1 {
		t.Errorf("a write that may have happened is no refusal: %+v", s.Conditions)
	}
}

// seen returns the status that a snapshot comes to.
func seen(s Snapshot) v1alpha1.EphemeralJobStatus {
	v := Classify(s)
	return v.status("")
}

func TestConditionsKeepTheirTimes(t *testing.T) {
	job := jobWith()
	job.Status.Conditions = nil
	empty := seen(Snapshot{Job: job, Now: start()})
	job.Status = empty
	if diff := cmp.Diff(empty, seen(Snapshot{Job: job, Now: start().Add(time.Hour)})); diff != "" {
		t.Errorf("nothing has happened, and the status changes:\n%s", diff)
	}
	other := seen(Snapshot{Job: job, Pods: fleet(t, "foreign"), Now: start().Add(time.Hour)})
	matched := find(other.Conditions, v1alpha1.EphemeralJobMatchedEmpty)
	if !matched.LastTransitionTime.Time.Equal(start()) || !matched.LastProbeTime.Time.Equal(start().Add(time.Hour)) {
		t.Errorf("another message: %+v", matched)
	}
	job.Status = other
	if s := seen(Snapshot{Job: job, Pods: fleet(t, "new"), Now: start().Add(time.Hour)}); len(s.Conditions) != 1 {
		t.Errorf("there is a Pod, and the conditions are %+v", s.Conditions)
	}
}
