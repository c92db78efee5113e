package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// web makes Pods web-0, web-1 ... that run, in which a container named shell runs for a while, as a duration or "forever", and ends well.
func (e *env) web(n int, duration string, changes ...func(*corev1.Pod)) {
	e.Helper()
	var none int64
	for i := range n {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: e.Namespace, Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{"app": "web"},
				Annotations: map[string]string{"sim.kruise.io/run-for.shell": duration},
			},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{pool: e.Namespace}, TerminationGracePeriodSeconds: &none,
				Containers: []corev1.Container{{Name: "app", Image: "busybox:1"}},
			},
		}
		for _, change := range changes {
			change(p)
		}
		e.Must(e.Client.Create(e.Ctx, p))
	}
	e.Eventually("the Pods run", func() error {
		for _, p := range e.pods() {
			if p.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s", p.Name, p.Status.Phase)
			}
		}
		return nil
	})
}

// only changes one Pod.
func only(name string, change func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Name == name {
			change(p)
		}
	}
}

func exits(code string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations["sim.kruise.io/exit-code.shell"] = code }
}

// shell is an EphemeralJob for these Pods. More are further fields of the spec.
func shell(more ...string) string {
	return `
apiVersion: apps.kruise.io/v1alpha1
kind: EphemeralJob
metadata: {name: shell}
spec:
  selector: {matchLabels: {app: web}}
  template: {ephemeralContainers: [{name: shell, image: "busybox:1", targetContainerName: app}]}
  ` + strings.Join(more, "\n  ")
}

func (e *env) shellJob() *v1alpha1.EphemeralJob {
	e.Helper()
	job := &v1alpha1.EphemeralJob{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "shell"}, job))
	return job
}

// patchShell changes the spec of the job, in JSON.
func (e *env) patchShell(spec string) {
	e.Helper()
	e.Must(e.Client.Patch(e.Ctx, e.shellJob(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))))
}

// comesTo waits for a status, without its times and conditions.
func (e *env) comesTo(want v1alpha1.EphemeralJobStatus) *v1alpha1.EphemeralJob {
	e.Helper()
	var job *v1alpha1.EphemeralJob
	e.Eventually(fmt.Sprintf("the status is %+v", want), func() error {
		job = e.shellJob()
		got := *job.Status.DeepCopy()
		got.Conditions, got.StartTime, got.CompletionTime = nil, nil, nil
		if !cmp.Equal(want, got) {
			return fmt.Errorf("it is %+v", job.Status)
		}
		return nil
	})
	return job
}

// condition returns the reason and the message of a condition that is true; nothing for one that is not there.
func condition(job *v1alpha1.EphemeralJob, t v1alpha1.EphemeralJobConditionType) string {
	for _, c := range job.Status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// followBusy returns the largest number of Pods in which containers of EphemeralJobs ran, or were about to, at the same time since.
func (e *env) followBusy() (most func() int) {
	e.Helper()
	var mu sync.Mutex
	busy, highest := map[string]bool{}, 0
	stop, err := e.Follow(context.Background(), &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		mu.Lock()
		defer mu.Unlock()
		p := event.Object.(*corev1.Pod)
		delete(busy, p.Name)
		for _, job := range ephemeral.Jobs(p) {
			if event.Type != watch.Deleted && ephemeral.ProgressOf(p, job).Busy {
				busy[p.Name] = true
			}
		}
		highest = max(highest, len(busy))
	})
	e.Must(err)
	e.Cleanup(func() { e.Must(stop()) })
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return highest
	}
}

// added returns the Pods' ephemeral containers with the job that each is of, as "web-0: shell of UID".
func (e *env) added() []string {
	e.Helper()
	var out []string
	for _, p := range e.pods() {
		for _, c := range p.Spec.EphemeralContainers {
			for _, variable := range c.Env {
				out = append(out, fmt.Sprintf("%s: %s %s=%s", p.Name, c.Name, variable.Name, variable.Value))
			}
		}
	}
	return out
}

func of(job *v1alpha1.EphemeralJob, pods ...string) []string {
	var out []string
	for _, p := range pods {
		out = append(out, fmt.Sprintf("%s: shell KRUISE_EJOB_ID=%s", p, job.UID))
	}
	return out
}

func (e *env) isGone() {
	e.Helper()
	e.Eventually("the job is gone", func() error {
		err := e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "shell"}, &v1alpha1.EphemeralJob{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %w", errors.Join(err, errors.New("it is there")))
		}
		return nil
	})
}

func TestFivePodsTwoAtATime(t *testing.T) {
	e := newEnv(t, 1)
	e.web(5, "2s") // so long that the second starts before the first has ended
	most := e.followBusy()
	e.create(shell("parallelism: 2", "ttlSecondsAfterFinished: 6"))
	job := e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobSucceeded, Match: 5, Succeeded: 5})
	if diff := cmp.Diff(of(job, "web-0", "web-1", "web-2", "web-3", "web-4"), e.added()); diff != "" {
		t.Errorf("the containers (-want +got):\n%s", diff)
	}
	if n := most(); n != 2 {
		t.Errorf("containers ran in %d Pods at a time, want 2", n)
	}
	if got := condition(job, v1alpha1.EphemeralJobIsSucceeded); got != "JobSucceeded: 5 Pods succeeded" || job.Status.CompletionTime == nil {
		t.Errorf("condition %q, completed at %v", got, job.Status.CompletionTime)
	}
	for _, p := range e.pods() {
		if s := p.Status.ContainerStatuses[0]; s.RestartCount != 0 || s.State.Running == nil {
			t.Errorf("the container of Pod %s is %+v", p.Name, s)
		}
	}
	e.Eventually("the event is there", func() error {
		if got := e.events("shell"); got["JobSucceeded"] != 1 || got["CreateFailed"] != 0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	asked, err := audit.Read(shared.AuditLog(), audit.Query{Agent: "kruise-manager", Namespace: e.Namespace})
	e.Must(err)
	if asked.Counts["patch pods/ephemeralcontainers 200"] != 5 || asked.Reads != 0 {
		t.Errorf("five writes are enough, and no reads: %v", asked.Counts)
	}
	e.isGone()
	if took := time.Since(job.Status.CompletionTime.Time); took < 6*time.Second {
		t.Errorf("it was kept for %s, want 6s", took)
	}
}

func TestOnePodFails(t *testing.T) {
	e := newEnv(t, 1)
	e.web(3, "300ms", only("web-1", exits("3")))
	e.create(shell("ttlSecondsAfterFinished: 6"))
	job := e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobFailed, Match: 3, Succeeded: 2, Failed: 1})
	if got := condition(job, v1alpha1.EphemeralJobIsFailed); got != "JobFailed: 1 of 3 Pods failed: web-1 (shell exited with code 3)" || job.Status.CompletionTime == nil {
		t.Errorf("condition %q, completed at %v", got, job.Status.CompletionTime)
	}
	e.isGone()
	e.Eventually("the event is there", func() error {
		if got := e.events("shell"); got["JobFailed"] != 1 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

func TestPausedJob(t *testing.T) {
	e := newEnv(t, 1)
	e.web(3, "forever")
	e.create(shell("paused: true"))
	e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobPaused, Match: 3})
	e.Always(2*time.Second, "a paused job adds nothing", func() error {
		if got := e.added(); len(got) > 0 {
			return fmt.Errorf("there are %v", got)
		}
		return nil
	})
	e.patchShell(`{"paused":false}`)
	e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobRunning, Match: 3, Running: 1})
	e.AtRest(2*time.Second, "a job at rest", func() string { return e.shellJob().ResourceVersion })
	e.patchShell(`{"paused":true,"parallelism":3}`)
	e.Always(time.Second, "a paused job adds nothing", func() error {
		if got := e.added(); len(got) != 1 {
			return fmt.Errorf("there are %v", got)
		}
		return nil
	})
	e.patchShell(`{"paused":false}`)
	e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobRunning, Match: 3, Running: 3})
}

func TestReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int
		want     []string
	}{
		"more than there are": {10, []string{"web-0", "web-1", "web-2", "web-3", "web-4"}},
		"some of them":        {2, []string{"web-0", "web-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, 1)
			e.web(5, "200ms")
			e.create(shell("parallelism: 5", fmt.Sprintf("replicas: %d", tc.replicas)))
			n := int32(len(tc.want))
			job := e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobSucceeded, Match: n, Succeeded: n})
			if diff := cmp.Diff(of(job, tc.want...), e.added()); diff != "" {
				t.Errorf("the containers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeadlineLeavesContainers(t *testing.T) {
	e := newEnv(t, 1)
	e.web(2, "forever")
	e.create(shell("activeDeadlineSeconds: 3"))
	job := e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobFailed, Match: 2, Running: 1})
	want := fmt.Sprintf("DeadlineExceeded: Job %s/shell was active longer than specified deadline; its containers run on in 1 Pod until they end or their Pods do", e.Namespace)
	if got := condition(job, v1alpha1.EphemeralJobIsFailed); got != want {
		t.Errorf("condition %q", got)
	}
	if took := job.Status.CompletionTime.Sub(job.Status.StartTime.Time); took < 3*time.Second || took > 20*time.Second {
		t.Errorf("it failed after %s, its deadline is 3s", took)
	}
	before := e.added()
	e.Must(e.Client.Delete(e.Ctx, job))
	e.isGone()
	if diff := cmp.Diff(before, e.added()); diff != "" || len(before) != 1 {
		t.Errorf("a deleted job (-before +after):\n%s", diff)
	}
}

// TestPodsThatJoin: a job for no Pods waits, says so, and takes those that come; those that can't take the containers are left out.
func TestPodsThatJoin(t *testing.T) {
	e := newEnv(t, 1)
	e.create(shell())
	job := e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobWaiting})
	if got := condition(job, v1alpha1.EphemeralJobMatchedEmpty); got != "MatchEmpty: job match no pods" {
		t.Errorf("condition %q", got)
	}
	e.web(3, "3s", only("web-1", func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" }))
	e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobSucceeded, Match: 2, Succeeded: 2})
	e.Eventually("the event is there", func() error {
		if got := e.events("shell"); got["PodsLeftOut"] == 0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

// TestRefusedContainers: what the API server refuses for one Pod keeps no other from its turn, and is told of.
func TestRefusedContainers(t *testing.T) {
	e := newEnv(t, 1)
	volume := []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	e.web(2, "200ms", only("web-1", func(p *corev1.Pod) { p.Spec.Volumes = volume }))
	e.create(strings.Replace(shell(), "targetContainerName: app", "volumeMounts: [{name: data, mountPath: /data}]", 1))
	job := e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobRunning, Match: 2, Succeeded: 1})
	if got := condition(job, v1alpha1.EphemeralJobIsFailed); !strings.HasPrefix(got, "CreateFailed: adding containers to web-0: ") || !strings.Contains(got, "volumeMounts[0]") {
		t.Errorf("condition %q", got)
	}
	e.Eventually("the event is there", func() error {
		if got := e.events("shell"); got["CreateFailed"] == 0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	e.Must(e.Client.Delete(e.Ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "web-0"}}))
	job = e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobSucceeded, Match: 1, Succeeded: 1})
	if len(job.Status.Conditions) != 2 {
		t.Errorf("conditions: %+v", job.Status.Conditions)
	}
}

// TestKilledManagersAddOnce: whenever the manager is killed, a Pod gets the containers once, and never more of them run than may.
func TestKilledManagersAddOnce(t *testing.T) {
	e := newSerialEnv(t, 1)
	e.web(12, "600ms")
	most := e.followBusy()
	e.create(shell("parallelism: 3"))
	for range 3 {
		time.Sleep(900 * time.Millisecond)
		e.CrashManager()
	}
	e.comesTo(v1alpha1.EphemeralJobStatus{Phase: v1alpha1.EphemeralJobSucceeded, Match: 12, Succeeded: 12})
	if n := len(e.added()); n != 12 {
		t.Errorf("%d containers were added to 12 Pods", n)
	}
	if n := most(); n > 3 {
		t.Errorf("containers ran in %d Pods at a time, parallelism is 3", n)
	}
}

// TestAnEphemeralJobOfAnOlderInstallationCanGo: it has a finalizer that nobody else takes off.
func TestAnEphemeralJobOfAnOlderInstallationCanGo(t *testing.T) {
	e := newEnv(t, 0)
	job := e.Make(`{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, metadata: {name: old, finalizers: [` + keys.EphemeralContainersCleanup + `]},
spec: {selector: {matchLabels: {app: none}}, template: {ephemeralContainers: [{name: shell, image: "busybox:1", terminationMessagePolicy: File}]}}}`)
	e.Must(e.Client.Delete(e.Ctx, job))
	e.Eventually("it is gone", func() error {
		err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(job), job)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v", err) //nolint:errorlint // there may be no error
	})
}
