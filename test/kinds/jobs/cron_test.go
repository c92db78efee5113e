package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// cronOf is an AdvancedCronJob with a template, in one line, and further fields of the spec.
func cronOf(schedule, template string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {name: nightly}
spec:
  schedule: %q
  template: {%s}
  %s`, schedule, template, strings.Join(more, "\n  "))
}

// broadcastTemplate makes BroadcastJobs on the test's nodes, whose Pods run for a while.
func (e *env) broadcastTemplate(runFor, more string) string {
	return fmt.Sprintf(`broadcastJobTemplate: {metadata: {labels: {made: here}}, spec: {template: {metadata: {annotations: {sim.kruise.io/run-for: %s}}, `+
		`spec: {nodeSelector: {%s: %s}, restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: app, image: "busybox:1"}]}} %s}}`, runFor, pool, e.Namespace, more)
}

// jobTemplate makes Jobs of Kubernetes whose Pod runs for a while.
func jobTemplate(runFor string) string {
	return fmt.Sprintf(`jobTemplate: {spec: {template: {metadata: {annotations: {sim.kruise.io/run-for: %s}}, `+
		`spec: {restartPolicy: Never, containers: [{name: app, image: "busybox:1"}]}}}}`, runFor)
}

func (e *env) cron() *v1beta1.AdvancedCronJob {
	e.Helper()
	job := &v1beta1.AdvancedCronJob{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "nightly"}, job))
	return job
}

func (e *env) editCron(change func(*v1beta1.AdvancedCronJob)) error {
	return scene.TryEdit(e.Env, "nightly", &v1beta1.AdvancedCronJob{}, change)
}

// made looks at the jobs of a kind all the time, and returns the names of all that were ever there, in their order. It does not watch them: a manager
// that starts writes to their CRD, which ends all watches.
func (e *env) made(list client.ObjectList) func() []string {
	e.Helper()
	var mu sync.Mutex
	var names []string
	seen := map[types.UID]bool{}
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		if e.Client.List(e.Ctx, list, client.InNamespace(e.Namespace)) != nil {
			return // the test is over, or the next look will do
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if job := item.(client.Object); !seen[job.GetUID()] {
				seen[job.GetUID()] = true
				names = append(names, job.GetName())
			}
			return nil
		})
	}
	var running sync.WaitGroup
	running.Go(func() {
		for e.Ctx.Err() == nil {
			look()
			time.Sleep(100 * time.Millisecond)
		}
	})
	e.Cleanup(running.Wait)
	return func() []string {
		look()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(names)
	}
}

// noSlotTwice checks that a job was made once for each slot: their names say for which.
func (e *env) noSlotTwice(names []string) {
	e.Helper()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			e.Errorf("%s was made twice: %v", name, names)
		}
	}
}

// TestOneSlotADay: whatever becomes of its job, the slot has had it.
func TestOneSlotADay(t *testing.T) {
	e := newEnv(t, 2)
	made := e.made(&v1beta1.BroadcastJobList{})
	slot := time.Now().UTC().Add(15 * time.Second).Truncate(time.Minute).Add(time.Minute) // not before the job with that slot is made
	schedule := fmt.Sprintf("%d %d * * *", slot.Minute(), slot.Hour())
	e.create(cronOf(schedule, e.broadcastTemplate("100ms", ", completionPolicy: {ttlSecondsAfterFinished: 8}"), "timeZone: UTC"))
	name := fmt.Sprintf("nightly-%d", slot.Unix())
	e.Eventually("the job of the slot is made", func() error {
		job := &v1beta1.BroadcastJob{}
		if err := e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, job); err != nil {
			return err
		}
		if at := job.Annotations["apps.kruise.io/scheduled-at"]; at != slot.Format(time.RFC3339) || job.Labels["made"] != "here" {
			t.Errorf("metadata of the job: %v %v", job.Labels, job.Annotations)
		}
		if owner := job.OwnerReferences; len(owner) != 1 || owner[0].APIVersion != "apps.kruise.io/v1beta1" || owner[0].Kind != "AdvancedCronJob" {
			t.Errorf("owners of the job: %v", owner)
		}
		if s := e.cron().Status; s.Type != "BroadcastJob" || s.LastScheduleTime == nil || !s.LastScheduleTime.Time.Equal(slot) {
			t.Errorf("once the job is there, the status is %+v", s)
		}
		return nil
	})
	e.Eventually("it is gone, as its time to live is over", func() error {
		var list v1beta1.BroadcastJobList
		if err := e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d are there", len(list.Items))
		}
		return nil
	})
	// What makes the controller look again must not make it forget.
	e.Must(e.editCron(func(job *v1beta1.AdvancedCronJob) { job.Labels = map[string]string{"a": "b"} }))
	e.Always(5*time.Second, "no second job is made", func() error {
		if names := made(); len(names) != 1 {
			return fmt.Errorf("%v were made", names)
		}
		return nil
	})
	s := e.cron().Status
	if len(s.Active) > 0 || !s.LastScheduleTime.Time.Equal(slot) {
		t.Errorf("status: %+v", s)
	}
	e.Eventually("the events are there", func() error {
		if got := e.events("nightly"); got["SuccessfulCreate"] != 1 || got["SawCompletedJob"] != 1 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

// TestForbid: the end of a job is what lets the next one start, not the next slot.
func TestForbid(t *testing.T) {
	e := newEnv(t, 0)
	e.create(cronOf("@every 20s", jobTemplate("22s"), "concurrencyPolicy: Forbid"))
	var first batchv1.Job
	jobs := func() []batchv1.Job {
		var list batchv1.JobList
		e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
		return list.Items
	}
	e.Eventually("the first job is over", func() error {
		all := jobs()
		if len(all) == 0 || all[0].Status.CompletionTime == nil {
			return errors.New("it is not")
		}
		first = all[0]
		return nil
	})
	e.Eventually("the next job is there", func() error {
		all := jobs()
		if len(all) < 2 {
			return fmt.Errorf("there are %d", len(all))
		}
		for _, job := range all {
			if wait := job.CreationTimestamp.Sub(first.Status.CompletionTime.Time); job.Name != first.Name && wait > 10*time.Second {
				t.Errorf("the next job came after %s", wait)
			}
		}
		return nil
	})
	e.Eventually("the events are there", func() error {
		if got := e.events("nightly"); got["JobAlreadyActive"] == 0 || got["SawCompletedJob"] == 0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

func TestReplace(t *testing.T) {
	e := newEnv(t, 1)
	made := e.made(&v1beta1.BroadcastJobList{})
	e.create(cronOf("@every 5s", e.broadcastTemplate("forever", ""), "concurrencyPolicy: Replace"))
	e.Eventually("the third job has replaced the second", func() error {
		names := made()
		if len(names) < 3 {
			return fmt.Errorf("made are %v", names)
		}
		var list v1beta1.BroadcastJobList
		if err := e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		for _, job := range list.Items {
			if job.DeletionTimestamp == nil && job.Name == names[1] {
				return fmt.Errorf("%s is still there", job.Name)
			}
		}
		return nil
	})
	e.Must(e.editCron(pause(true)))
	e.noSlotTwice(made())
}

func pause(on bool) func(*v1beta1.AdvancedCronJob) {
	return func(job *v1beta1.AdvancedCronJob) { job.Spec.Paused = &on }
}

func TestHistory(t *testing.T) {
	e := newEnv(t, 0)
	made := e.made(&batchv1.JobList{})
	e.create(cronOf("@every 5s", jobTemplate("0s"), "successfulJobsHistoryLimit: 2"))
	e.Eventually("four jobs were made", func() error {
		if n := len(made()); n < 4 {
			return fmt.Errorf("%d were", n)
		}
		return nil
	})
	e.Must(e.editCron(pause(true)))
	e.Eventually("the newest two are kept", func() error {
		var list batchv1.JobList
		if err := e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		var names []string
		for _, job := range list.Items {
			names = append(names, job.Name)
		}
		slices.Sort(names)
		if all := made(); !slices.Equal(names, all[len(all)-2:]) {
			return fmt.Errorf("kept are %v of %v", names, all)
		}
		return nil
	})
	e.noSlotTwice(made())
}

// TestManagersThatDie: what was missed while no manager was there is made up for by one job, and no slot has two.
func TestManagersThatDie(t *testing.T) {
	e := newSerialEnv(t, 1)
	made := e.made(&v1beta1.BroadcastJobList{})
	e.create(cronOf("@every 5s", e.broadcastTemplate("0s", ", completionPolicy: {ttlSecondsAfterFinished: 1}")))
	for i := range 4 {
		e.Eventually("more jobs are made", func() error {
			if n := len(made()); n < 2*(i+1) {
				return fmt.Errorf("%d were", n)
			}
			return nil
		})
		e.CrashManager()
	}
	shared.Manager.Kill()
	before := len(made())
	time.Sleep(12 * time.Second)
	e.Must(shared.Relaunch(e.Ctx))
	e.Eventually("one job makes up for what was missed", func() error {
		if n := len(made()); n <= before {
			return errors.New("none does")
		}
		return nil
	})
	e.Must(e.editCron(pause(true)))
	names := made()
	e.noSlotTwice(names)
	// Of the slots of twelve seconds all but the last were left out.
	if n := len(names) - before; n > 6 {
		t.Errorf("%d jobs were made in the moments after twelve seconds without a manager: %v", n, names[before:])
	}
}

func TestAdvancedCronJobsThatMakeNoSense(t *testing.T) {
	e := newEnv(t, 0)
	job := jobTemplate("1s")
	images := "imageListPullJobTemplate: {spec: {images: [nginx]}}"
	for name, tc := range map[string]struct{ text, want string }{
		"no schedule":                 {cronOf("", job), "spec.schedule"},
		"a schedule of words":         {cronOf("at noon", job), "spec.schedule"},
		"a zone and nothing else":     {cronOf("TZ=0", job), "spec.schedule"},
		"the zone of the machine":     {cronOf("@daily", job, "timeZone: Local"), "spec.timeZone"},
		"a zone on Mars":              {cronOf("@daily", job, "timeZone: Mars/Base"), "spec.timeZone"},
		"two zones":                   {cronOf("TZ=UTC @daily", job, "timeZone: UTC"), "spec.schedule"},
		"a negative deadline":         {cronOf("@daily", job, "startingDeadlineSeconds: -1"), "spec.startingDeadlineSeconds"},
		"no template":                 {cronOf("@daily", ""), "spec.template: Forbidden"},
		"two templates":               {cronOf("@daily", job+", "+e.broadcastTemplate("1s", "")), "spec.template: Forbidden"},
		"a long name":                 {strings.Replace(cronOf("@daily", job), "nightly", strings.Repeat("n", 60), 1), "metadata.name"},
		"a reserved label":            {cronOf("@daily", strings.Replace(e.broadcastTemplate("1s", ""), "annotations: {", "labels: {broadcastjob-name: x}, annotations: {", 1)), "spec.template.broadcastJobTemplate.spec.template.metadata.labels"},
		"Pods that run for ever":      {cronOf("@daily", strings.Replace(job, "Never", "Always", 1)), "spec.template.jobTemplate.spec.template.spec.restartPolicy"},
		"a container of no name":      {cronOf("@daily", strings.Replace(job, "name: app,", "", 1)), "spec.template.jobTemplate.spec.template.spec.containers[0].name"},
		"pulls beside each other":     {cronOf("@daily", images, "concurrencyPolicy: Allow"), "spec.concurrencyPolicy"},
		"pulls that never end":        {cronOf("@daily", strings.Replace(images, "spec: {", "spec: {completionPolicy: {type: Never}, ", 1)), "spec.template.imageListPullJobTemplate.spec.completionPolicy.type"},
		"pulls with a time to live":   {cronOf("@daily", strings.Replace(images, "spec: {", "spec: {completionPolicy: {ttlSecondsAfterFinished: 1}, ", 1)), "spec.template.imageListPullJobTemplate.spec.completionPolicy.ttlSecondsAfterFinished"},
		"pulls of the same image":     {cronOf("@daily", strings.Replace(images, "[nginx]", "[nginx, nginx]", 1)), "spec.template.imageListPullJobTemplate.spec.images[1]"},
		"pulls of what is no image":   {cronOf("@daily", strings.Replace(images, "[nginx]", "[N!]", 1)), "spec.template.imageListPullJobTemplate.spec.images[0]"},
		"pulls of names and by label": {cronOf("@daily", strings.Replace(images, "spec: {", "spec: {selector: {names: [a], matchLabels: {a: b}}, ", 1)), "spec.template.imageListPullJobTemplate.spec.selector"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := e.refused(tc.text); !strings.Contains(got, tc.want) {
				t.Errorf("refused with %q, want %s in it", got, tc.want)
			}
		})
	}
}

func TestWhatMayChange(t *testing.T) {
	e := newEnv(t, 0)
	e.create(cronOf("@yearly", jobTemplate("1s")))
	err := e.editCron(func(job *v1beta1.AdvancedCronJob) {
		job.Spec.Template.JobTemplate.Spec.Template.Spec.Containers[0].Image = "busybox:2"
	})
	if err == nil || !strings.Contains(err.Error(), "spec: Forbidden: updates are only allowed to") {
		t.Errorf("changing the image: %v", err)
	}
	made := e.made(&batchv1.JobList{})
	e.Must(e.editCron(func(job *v1beta1.AdvancedCronJob) { job.Spec.Schedule = "@every 5s" }))
	e.Eventually("the new schedule holds", func() error {
		if len(made()) == 0 {
			return errors.New("no job was made")
		}
		return nil
	})
	e.Must(e.editCron(pause(true)))
}

// TestImageListsInTheOlderVersion: what the older version has no field for must not keep it from listing.
func TestImageListsInTheOlderVersion(t *testing.T) {
	e := newEnv(t, 0)
	e.create(cronOf("@every 5s", `imageListPullJobTemplate: {metadata: {labels: {made: here}}, spec: {images: [nginx, "busybox:1"], completionPolicy: {activeDeadlineSeconds: 3600}}}`))
	e.Eventually("a list is made", func() error {
		var list v1beta1.ImageListPullJobList
		if err := e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return errors.New("there is none")
		}
		if got := list.Items[0]; got.Labels["made"] != "here" || !slices.Equal(got.Spec.Images, []string{"nginx", "busybox:1"}) {
			t.Errorf("%v %v", got.Labels, got.Spec)
		}
		return nil
	})
	e.Must(e.editCron(pause(true)))
	before := e.cron()
	if before.Spec.ConcurrencyPolicy != "Replace" || before.Status.Type != "ImageListPullJob" {
		t.Errorf("concurrencyPolicy %s, type %s", before.Spec.ConcurrencyPolicy, before.Status.Type)
	}
	if pull := before.Spec.Template.ImageListPullJobTemplate.Spec.PullPolicy; pull == nil || *pull.TimeoutSeconds != 600 || *pull.BackoffLimit != 3 {
		t.Errorf("pullPolicy: %v", pull)
	}
	var older v1alpha1.AdvancedCronJobList
	e.Must(e.Client.List(e.Ctx, &older, client.InNamespace(e.Namespace)))
	if len(older.Items) != 1 || !strings.Contains(older.Items[0].Annotations["apps.kruise.io/image-list-pull-job-template"], "busybox:1") {
		t.Fatalf("in the older version: %+v", older.Items)
	}
	scene.Edit(e.Env, "nightly", &v1alpha1.AdvancedCronJob{}, func(job *v1alpha1.AdvancedCronJob) {
		job.Labels = map[string]string{"a": "b"}
	})
	raw := &unstructured.Unstructured{}
	raw.SetAPIVersion("apps.kruise.io/v1beta1")
	raw.SetKind("AdvancedCronJob")
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "nightly"}, raw))
	images, _, _ := unstructured.NestedStringSlice(raw.Object, "spec", "template", "imageListPullJobTemplate", "spec", "images")
	if _, left := raw.GetAnnotations()["apps.kruise.io/image-list-pull-job-template"]; left || !slices.Equal(images, []string{"nginx", "busybox:1"}) {
		t.Errorf("after a write in the older version: %v %v", raw.GetAnnotations(), images)
	}
}
