package validating

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Valid objects.
const (
	patchJob = `
apiVersion: apps.kruise.io/v1beta1
kind: BroadcastJob
metadata: {name: patch, namespace: ns}
spec: {template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: app, image: "busybox:1"}]}}}`
	nightly = `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {name: nightly, namespace: ns}
spec:
  schedule: 0 3 * * *
  template: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "busybox:1"}]}}}}}`
	images = `{imageListPullJobTemplate: {spec: {images: [nginx, "busybox:1"]}}}`
)

func askJob(handler admission.Handler, object, old []byte) admission.Response {
	request := admissionv1.AdmissionRequest{
		UID: "1", Namespace: "ns", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}
	if old != nil {
		request.Operation = admissionv1.Update
	}
	return handler.Handle(context.Background(), admission.Request{AdmissionRequest: request})
}

func TestJobRules(t *testing.T) {
	long := strings.Repeat("n", 53)
	const bad = "updates are only allowed to schedule, concurrencyPolicy, successfulJobsHistoryLimit, failedJobsHistoryLimit, " +
		"startingDeadlineSeconds, timeZone, paused and the content of imageListPullJobTemplate: create another AdvancedCronJob to make other jobs"
	for name, tc := range map[string]struct {
		object string
		old    edits // unset creates
		new    edits
		want   string
	}{
		"a valid BroadcastJob":   {object: patchJob, want: "allowed"},
		"Pods that run for ever": {object: patchJob, new: edits{"spec.template.spec.restartPolicy": "Always"}, want: `spec.template.spec.restartPolicy: Invalid value: "Always": must be Never or OnFailure: the Pods of a job end`},
		"a reserved label":       {object: patchJob, new: edits{"spec.template.metadata.labels": "{broadcastjob-name: x}"}, want: `spec.template.metadata.labels: Invalid value: {"broadcastjob-name":"x"}: label broadcastjob-name is reserved: the controller gives it to the Pods`},
		"an old mistake stays":   {object: patchJob, old: edits{"spec.parallelism": "many"}, new: edits{"spec.parallelism": "many", "metadata.labels": "{a: b}"}, want: "allowed"},
		"another template":       {object: patchJob, old: edits{}, new: edits{"spec.template.spec.hostname": "h"}, want: "allowed"},

		"a valid AdvancedCronJob": {object: nightly, want: "allowed"},
		"a long name of old":      {object: nightly, old: edits{"metadata.name": long}, new: edits{"metadata.name": long, "spec.schedule": "'@daily'"}, want: "allowed"},
		"every second": {
			object: nightly, new: edits{"spec.schedule": "'@every 1s'"},
			want: `spec.schedule: Invalid value: "@every 1s": is due every 1s: use 5s or more`,
		},
		"every second, of old": {
			object: nightly, old: edits{"spec.schedule": "'@every 1s'"},
			new: edits{"spec.schedule": "'@every 1s'", "spec.paused": "true"}, want: "allowed",
		},
		"every second, later": {
			object: nightly, old: edits{"spec.schedule": "'@every 1s'"}, new: edits{"spec.schedule": "'@every 2s'"},
			want: `spec.schedule: Invalid value: "@every 2s": is due every 2s: use 5s or more`,
		},
		"two zones":        {object: nightly, new: edits{"spec.schedule": "TZ=UTC @daily", "spec.timeZone": "UTC"}, want: `spec.schedule: Invalid value: "TZ=UTC @daily": names a time zone, and so does timeZone: name it in timeZone only`},
		"no template":      {object: nightly, new: edits{"spec.template": "{}"}, want: "spec.template: Forbidden: 0 templates are given: set exactly one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate"},
		"another schedule": {object: nightly, old: edits{}, new: edits{"spec.schedule": "'@daily'", "spec.paused": "true"}, want: "allowed"},
		"another image of a job": {
			object: nightly, old: edits{}, new: edits{"spec.template.jobTemplate.spec.template.spec.containers": "[{name: app, image: x}]"}, want: "spec: Forbidden: " + bad,
		},
		"other images to pull":    {object: nightly, old: edits{"spec.template": images}, new: edits{"spec.template": "{imageListPullJobTemplate: {spec: {images: [redis]}}}"}, want: "allowed"},
		"pulls instead of jobs":   {object: nightly, old: edits{}, new: edits{"spec.template": images}, want: "spec: Forbidden: " + bad},
		"a reserved label, later": {object: nightly, new: edits{"spec.template": "{broadcastJobTemplate: {spec: {template: {metadata: {labels: {broadcastjob-name: x}}, spec: {restartPolicy: Never}}}}}"}, want: `spec.template.broadcastJobTemplate.spec.template.metadata.labels: Invalid value: {"broadcastjob-name":"x"}: label broadcastjob-name is reserved: the controller gives it to the Pods`},
		"a template in an annotation": {
			object: nightly, new: edits{
				"apiVersion": "apps.kruise.io/v1alpha1", "spec.template": "{}", "spec.concurrencyPolicy": "Allow",
				"metadata.annotations": `{apps.kruise.io/image-list-pull-job-template: '{"spec":{"images":["nginx"]}}'}`,
			},
			want: `spec.concurrencyPolicy: Unsupported value: "Allow": supported values: "Forbid", "Replace"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var old []byte
			if tc.old != nil {
				old = edit(t, tc.object, tc.old)
			}
			handler := BroadcastJob(Options{})
			if tc.object == nightly {
				handler = AdvancedCronJob(Options{})
			}
			got := strings.Join(causes(askJob(handler, edit(t, tc.object, tc.new), old)), "\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
