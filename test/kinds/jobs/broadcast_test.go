package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// broadcast is a BroadcastJob on the test's nodes whose Pods run until the test has them exit. More are further fields of the spec.
func (e *env) broadcast(more ...string) string {
	return e.broadcastRunning("forever", more...)
}

// broadcastRunning is one whose Pods run for a while, as a duration or "forever".
func (e *env) broadcastRunning(duration string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: BroadcastJob
metadata: {name: patch}
spec:
  template:
    metadata: {annotations: {sim.kruise.io/run-for: %s}}
    spec:
      nodeSelector: {%s: %s}
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: "busybox:1"}]
  %s`, duration, pool, e.Namespace, strings.Join(more, "\n  "))
}

func (e *env) job() *v1beta1.BroadcastJob {
	e.Helper()
	job := &v1beta1.BroadcastJob{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "patch"}, job))
	return job
}

func (e *env) editJob(change func(*v1beta1.BroadcastJob)) {
	e.Helper()
	scene.Edit(e.Env, "patch", &v1beta1.BroadcastJob{}, change)
}

// tally is what a status counts.
type tally struct {
	Phase                              v1beta1.BroadcastJobPhase
	Desired, Active, Succeeded, Failed int32
}

func (e *env) reaches(want tally) *v1beta1.BroadcastJob {
	e.Helper()
	var job *v1beta1.BroadcastJob
	e.Eventually(fmt.Sprintf("the status is %+v", want), func() error {
		job = e.job()
		if s := job.Status; (tally{s.Phase, s.Desired, s.Active, s.Succeeded, s.Failed}) != want {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	return job
}

// followActive returns the largest number of Pods that were under way at the same time since.
func (e *env) followActive() (most func() int) {
	e.Helper()
	under, now, highest := map[string]bool{}, 0, atomic.Int64{}
	stop, err := e.Follow(context.Background(), &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		p := event.Object.(*corev1.Pod)
		was := under[p.Name]
		is := event.Type != watch.Deleted && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
		under[p.Name] = is
		switch {
		case is && !was:
			now++
		case was && !is:
			now--
		}
		highest.Store(max(highest.Load(), int64(now)))
	})
	e.Must(err)
	e.Cleanup(func() { e.Must(stop()) })
	return func() int { return int(highest.Load()) }
}

func (e *env) placed() []string {
	var out []string
	for _, p := range e.pods() {
		out = append(out, nodeOf(&p))
	}
	return out
}

func TestOneNodeIsTainted(t *testing.T) {
	e := newEnv(t, 5)
	e.taint(e.Nodes[4], corev1.Taint{Key: "maint", Value: "1", Effect: corev1.TaintEffectNoSchedule})
	most := e.followActive()
	e.create(e.broadcastRunning("500ms", "parallelism: 2"))
	e.Eventually("the nodes are counted", func() error {
		if n := e.job().Status.Desired; n != 4 {
			return fmt.Errorf("desired is %d", n)
		}
		return nil
	})
	job := e.reaches(tally{v1beta1.BroadcastJobCompleted, 4, 0, 4, 0})
	if n := most(); n > 2 {
		t.Errorf("%d Pods were active, parallelism is 2", n)
	}
	if len(job.Status.Conditions) != 1 || job.Status.CompletionTime == nil {
		t.Fatalf("status: %+v", job.Status)
	}
	c := job.Status.Conditions[0]
	if c.Type != "Complete" || c.Status != "True" || c.Reason != "Complete" || c.Message != "Job completed, 4 pods succeeded, 0 pods failed" {
		t.Errorf("condition: %+v", c)
	}
	p := e.pods()[0]
	if p.Labels["broadcastjob-name"] != "patch" || p.Labels["broadcastjob-controller-uid"] != string(job.UID) {
		t.Errorf("labels of the Pods: %v", p.Labels)
	}
	e.Eventually("the events are there", func() error {
		if got := e.events("patch"); got["JobComplete"] != 1 || got["SuccessfulCreate"] != 4 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	// What is over stays as it is.
	e.taint(e.Nodes[4])
	e.Always(2*time.Second, "a job that is over gets no more Pods", func() error {
		if n := len(e.pods()); n != 4 {
			return fmt.Errorf("%d Pods", n)
		}
		return nil
	})
}

func TestPercentageOfNodes(t *testing.T) {
	e := newEnv(t, 7)
	most := e.followActive()
	e.create(e.broadcastRunning("3s", "parallelism: 30%")) // so long that the third starts before the first has ended
	e.reaches(tally{v1beta1.BroadcastJobCompleted, 7, 0, 7, 0})
	if n := most(); n != 3 {
		t.Errorf("%d Pods were active at once, 30%% of 7 is 3", n)
	}
}

func TestFailFast(t *testing.T) {
	e := newEnv(t, 4)
	e.create(e.broadcast("parallelism: 2"))
	e.finish(e.Nodes[0], 0)
	e.reaches(tally{v1beta1.BroadcastJobRunning, 4, 2, 1, 0})
	e.finish(e.Nodes[1], 1)
	job := e.reaches(tally{v1beta1.BroadcastJobFailed, 4, 0, 1, 2})
	c := job.Status.Conditions
	if len(c) != 1 || c[0].Type != "Failed" || c[0].Message != "failure policy is FailurePolicyTypeFailFast and failed pod is found" || job.Status.CompletionTime == nil {
		t.Errorf("status: %+v", job.Status)
	}
	e.Eventually("what still runs is deleted", func() error {
		if got := e.placed(); !slices.Equal(got, e.Nodes[:2]) {
			return fmt.Errorf("Pods are on %v", got)
		}
		return nil
	})
	e.Always(2*time.Second, "the last node gets no Pod", func() error {
		if got := e.placed(); slices.Contains(got, e.Nodes[3]) {
			return fmt.Errorf("Pods are on %v", got)
		}
		return nil
	})
	e.Eventually("the event is there", func() error {
		if got := e.events("patch"); got["failed pod is found"] != 1 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

func TestContinue(t *testing.T) {
	e := newEnv(t, 4)
	e.create(e.broadcast("failurePolicy: {type: Continue}"))
	for i, node := range e.Nodes {
		code := 0
		if i == 2 {
			code = 1
		}
		e.finish(node, code)
	}
	e.reaches(tally{v1beta1.BroadcastJobCompleted, 4, 0, 3, 1})
}

func TestPauseAtEachFailure(t *testing.T) {
	e := newEnv(t, 4)
	e.create(e.broadcast("parallelism: 1", "failurePolicy: {type: Pause}"))
	e.finish(e.Nodes[0], 1)
	if job := e.reaches(tally{v1beta1.BroadcastJobPaused, 4, 0, 0, 1}); !job.Spec.Paused {
		e.Eventually("spec.paused is set", func() error {
			if !e.job().Spec.Paused {
				return fmt.Errorf("it is not")
			}
			return nil
		})
	}
	e.Always(time.Second, "no node gets a Pod meanwhile", func() error {
		if n := len(e.pods()); n != 1 {
			return fmt.Errorf("%d Pods", n)
		}
		return nil
	})
	goOn := func(job *v1beta1.BroadcastJob) { job.Spec.Paused = false }
	e.editJob(goOn)
	e.finish(e.Nodes[1], 0)
	e.finish(e.Nodes[2], 2)
	e.reaches(tally{v1beta1.BroadcastJobPaused, 4, 0, 1, 2})
	e.editJob(goOn)
	e.finish(e.Nodes[3], 0)
	e.reaches(tally{v1beta1.BroadcastJobCompleted, 4, 0, 2, 2})
	e.Eventually("the events are there", func() error {
		if got := e.events("patch"); got["Paused"] != 2 || got["Continue"] != 2 || got["JobComplete"] != 1 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

func TestTimeToLive(t *testing.T) {
	e := newEnv(t, 2)
	e.create(e.broadcastRunning("100ms", "completionPolicy: {ttlSecondsAfterFinished: 3}"))
	done := e.reaches(tally{v1beta1.BroadcastJobCompleted, 2, 0, 2, 0}).Status.CompletionTime.Time
	e.Eventually("the job is gone", func() error {
		err := e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "patch"}, &v1beta1.BroadcastJob{})
		if err == nil {
			return errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
	if lived := time.Since(done); lived < 3*time.Second {
		t.Errorf("the job was deleted after %s, its time to live is 3s", lived)
	}
	e.Eventually("its Pods are gone", func() error {
		if n := len(e.pods()); n != 0 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
}

func TestNeverDone(t *testing.T) {
	e := newEnv(t, 3)
	e.create(e.broadcastRunning("100ms", "completionPolicy: {type: Never}"))
	e.reaches(tally{v1beta1.BroadcastJobRunning, 3, 0, 3, 0})
	e.AddNode()
	e.reaches(tally{v1beta1.BroadcastJobRunning, 4, 0, 4, 0})
	// A node that comes and goes is done once.
	taint := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	first := e.Nodes[0]
	before := e.pods()
	e.taint(first, taint)
	same := func() error {
		if got := e.pods(); len(got) != 4 || got[0].UID != before[0].UID {
			return fmt.Errorf("%d Pods", len(got))
		}
		return nil
	}
	e.Always(time.Second, "the Pods stay", same)
	e.taint(first)
	e.Always(time.Second, "the Pods stay", same)
	e.reaches(tally{v1beta1.BroadcastJobRunning, 4, 0, 4, 0})
}

func TestCordonedNodes(t *testing.T) {
	e := newEnv(t, 3)
	cordon := func(node string, on bool) {
		e.EditNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = on })
	}
	cordon(e.Nodes[0], true)
	e.create(e.broadcast())
	e.reaches(tally{v1beta1.BroadcastJobRunning, 2, 2, 0, 0})
	// What runs goes on on a node that wants no new Pods; a node that is open again gets its Pod.
	e.finish(e.Nodes[1], 0)
	cordon(e.Nodes[2], true)
	e.Always(time.Second, "the Pod of a cordoned node runs on", func() error {
		if got := e.placed(); !slices.Equal(got, e.Nodes[1:]) {
			return fmt.Errorf("Pods are on %v", got)
		}
		return nil
	})
	cordon(e.Nodes[0], false)
	e.reaches(tally{v1beta1.BroadcastJobRunning, 3, 2, 1, 0})
	e.finish(e.Nodes[0], 0)
	e.finish(e.Nodes[2], 0)
	e.reaches(tally{v1beta1.BroadcastJobCompleted, 3, 0, 3, 0})
}

func TestPausedFromTheStart(t *testing.T) {
	e := newEnv(t, 2)
	e.create(e.broadcastRunning("100ms", "paused: true"))
	e.reaches(tally{v1beta1.BroadcastJobPaused, 2, 0, 0, 0})
	e.Always(time.Second, "no Pod is created", func() error {
		if n := len(e.pods()); n != 0 {
			return fmt.Errorf("%d Pods", n)
		}
		return nil
	})
	e.editJob(func(job *v1beta1.BroadcastJob) { job.Spec.Paused = false })
	e.reaches(tally{v1beta1.BroadcastJobCompleted, 2, 0, 2, 0})
	e.Eventually("the event is there", func() error {
		if got := e.events("patch"); got["Continue"] != 1 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

func TestCrashLoop(t *testing.T) {
	e := newEnv(t, 1)
	text := strings.Replace(
		e.broadcastRunning("100ms", "failurePolicy: {type: Continue, restartLimit: 2}"), "restartPolicy: Never", "restartPolicy: OnFailure",
		1,
	)
	e.create(strings.Replace(text, "sim.kruise.io/run-for: 100ms", `sim.kruise.io/run-for: 100ms, sim.kruise.io/exit-code: "1"`, 1))
	e.reaches(tally{v1beta1.BroadcastJobCompleted, 1, 0, 0, 1})
	e.Eventually("the Pod is not left to crash for ever", func() error {
		if n := len(e.pods()); n != 0 {
			return fmt.Errorf("%d Pods", n)
		}
		return nil
	})
}

func TestBroadcastJobsThatMakeNoSense(t *testing.T) {
	e := newEnv(t, 0)
	good := e.broadcast()
	for name, tc := range map[string]struct{ old, new, want string }{
		"a reserved label":       {"annotations: {", "labels: {broadcastjob-name: x}, annotations: {", "spec.template.metadata.labels"},
		"Pods that run for ever": {"restartPolicy: Never", "restartPolicy: Always", "spec.template.spec.restartPolicy"},
		"no restart policy":      {"restartPolicy: Never", "", "spec.template.spec.restartPolicy"},
		"a time to live of Never": {
			"spec:\n", "spec:\n  completionPolicy: {type: Never, ttlSecondsAfterFinished: 5}\n",
			"spec.completionPolicy.ttlSecondsAfterFinished",
		},
		"a deadline of Never": {
			"spec:\n", "spec:\n  completionPolicy: {type: Never, activeDeadlineSeconds: 5}\n",
			"spec.completionPolicy.activeDeadlineSeconds",
		},
		"a name with a dot":      {"name: patch", "name: a.b", "metadata.name"},
		"a bad parallelism":      {"spec:\n", "spec:\n  parallelism: -1\n", "spec.parallelism"},
		"a bad failure policy":   {"spec:\n", "spec:\n  failurePolicy: {type: Ignore}\n", "spec.failurePolicy.type"},
		"a container of no name": {"name: app,", "", "spec.template.spec.containers[0].name"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := e.refused(strings.Replace(good, tc.old, tc.new, 1)); !strings.Contains(got, tc.want) {
				t.Errorf("refused with %q, want the field %s in it", got, tc.want)
			}
		})
	}
}

func TestBroadcastJobInBothVersions(t *testing.T) {
	e := newEnv(t, 0)
	e.create(
		strings.Replace(
			e.broadcast("parallelism: 20%", "paused: true", "completionPolicy: {activeDeadlineSeconds: 3600}"), "v1beta1", "v1alpha1", 1,
		),
	)
	before := e.job().Spec
	e.editJob(func(job *v1beta1.BroadcastJob) { job.Labels = map[string]string{"a": "b"} })
	older := &v1alpha1.BroadcastJob{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "patch"}, older))
	if diff := cmp.Diff(before, older.Spec); diff != "" {
		t.Errorf("(-v1beta1 +v1alpha1):\n%s", diff)
	}
	raw := &unstructured.Unstructured{}
	raw.SetAPIVersion("apps.kruise.io/v1beta1")
	raw.SetKind("BroadcastJob")
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "patch"}, raw))
	policy, _, _ := unstructured.NestedString(raw.Object, "spec", "failurePolicy", "type")
	pull, _, _ := unstructured.NestedSlice(raw.Object, "spec", "template", "spec", "containers")
	if policy != "FailFast" || pull[0].(map[string]any)["imagePullPolicy"] != "Always" {
		t.Errorf("defaults are missing: %v", raw.Object["spec"])
	}
}
