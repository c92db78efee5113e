package defaults

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	return into
}

func TestBroadcastJobDefaults(t *testing.T) {
	job := read[v1beta1.BroadcastJob](t, `{spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "busybox:1"}]}}}}`)
	BroadcastJob(job, nil, Options{})
	s := job.Spec
	if s.Parallelism.IntValue() != 2147483647 || s.CompletionPolicy.Type != "Always" || s.FailurePolicy.Type != "FailFast" {
		t.Errorf("parallelism %v, completion %s, failure %s", s.Parallelism, s.CompletionPolicy.Type, s.FailurePolicy.Type)
	}
	if pull := s.Template.Spec.Containers[0].ImagePullPolicy; pull != "Always" || s.Template.Spec.RestartPolicy != "Never" {
		t.Errorf("the template has not its defaults: %+v", s.Template.Spec)
	}
	// A template that has not changed stays as it is, whatever a later build fills in.
	old := job.DeepCopy()
	old.Spec.Template.Spec.DNSPolicy = ""
	again := old.DeepCopy()
	BroadcastJob(again, old, Options{})
	if diff := cmp.Diff(old.Spec.Template, again.Spec.Template); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	bare := read[v1beta1.BroadcastJob](t, `{spec: {template: {spec: {containers: [{name: app, image: "busybox:1"}]}}}}`)
	BroadcastJob(bare, nil, Options{TemplateNoDefaults: true})
	if bare.Spec.Template.Spec.RestartPolicy != "" {
		t.Errorf("the template was filled in: %+v", bare.Spec.Template.Spec)
	}
}

func TestAdvancedCronJobDefaults(t *testing.T) {
	const pod = `{restartPolicy: Never, containers: [{name: app, image: "busybox:1"}]}`
	for name, tc := range map[string]struct {
		in, want string
	}{
		"of jobs":               {`{spec: {template: {jobTemplate: {spec: {template: {spec: ` + pod + `}}}}}}`, "Allow"},
		"of BroadcastJobs":      {`{spec: {template: {broadcastJobTemplate: {spec: {template: {spec: ` + pod + `}}}}}}`, "Allow"},
		"of pulls":              {`{spec: {template: {imageListPullJobTemplate: {spec: {images: [nginx]}}}}}`, "Replace"},
		"of what the user says": {`{spec: {concurrencyPolicy: Forbid, template: {imageListPullJobTemplate: {spec: {images: [nginx]}}}}}`, "Forbid"},
	} {
		t.Run(name, func(t *testing.T) {
			job := read[v1beta1.AdvancedCronJob](t, tc.in)
			AdvancedCronJob(job, nil, Options{})
			s := job.Spec
			if string(s.ConcurrencyPolicy) != tc.want || *s.SuccessfulJobsHistoryLimit != 3 || *s.FailedJobsHistoryLimit != 1 || *s.Paused {
				t.Errorf("%s, %d and %d jobs, paused %v", s.ConcurrencyPolicy, *s.SuccessfulJobsHistoryLimit, *s.FailedJobsHistoryLimit, *s.Paused)
			}
			switch {
			case s.Template.JobTemplate != nil && s.Template.JobTemplate.Spec.Template.Spec.DNSPolicy == "",
				s.Template.BroadcastJobTemplate != nil && s.Template.BroadcastJobTemplate.Spec.Template.Spec.DNSPolicy == "":
				t.Error("the template of the Pods has not its defaults")
			}
		})
	}
}
