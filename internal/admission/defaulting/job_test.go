package defaulting

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// TestJobsOfBothVersions compares the answers as users see them: what a version spells differently stays as it was written.
func TestJobsOfBothVersions(t *testing.T) {
	const pod = `{spec: {template: {spec: {dnsPolicy: Default, restartPolicy: Never, schedulerName: s, securityContext: {}, terminationGracePeriodSeconds: 3}}}}`
	for name, tc := range map[string]struct {
		handler admission.Handler
		object  string
		want    string
	}{
		"a BroadcastJob": {
			BroadcastJob(defaults.Options{TemplateNoDefaults: true}), "{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob, spec: {later: 1}}",
			`[{op: add, path: /spec/completionPolicy, value: {type: Always}}, {op: add, path: /spec/failurePolicy, value: {type: FailFast}}, {op: add, path: /spec/parallelism, value: 2147483647}]`,
		},
		"jobs, in the older version": {
			AdvancedCronJob(defaults.Options{}), "{apiVersion: apps.kruise.io/v1alpha1, kind: AdvancedCronJob, spec: {template: {jobTemplate: " + pod + "}}}",
			`[{op: add, path: /spec/concurrencyPolicy, value: Allow}, {op: add, path: /spec/failedJobsHistoryLimit, value: 1}, ` +
				`{op: add, path: /spec/paused, value: false}, {op: add, path: /spec/successfulJobsHistoryLimit, value: 3}]`,
		},
		"pulls, in the older version": {
			AdvancedCronJob(defaults.Options{}),
			`{apiVersion: apps.kruise.io/v1alpha1, kind: AdvancedCronJob, metadata: {annotations: {apps.kruise.io/image-list-pull-job-template: "{ }"}}, spec: {paused: true, template: {}}}`,
			`[{op: add, path: /spec/concurrencyPolicy, value: Replace}, {op: add, path: /spec/failedJobsHistoryLimit, value: 1}, {op: add, path: /spec/successfulJobsHistoryLimit, value: 3}]`,
		},
		"another version": {BroadcastJob(defaults.Options{}), "{apiVersion: apps.kruise.io/v1, kind: BroadcastJob}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := yaml.YAMLToJSON([]byte(tc.object))
			if err != nil {
				t.Fatal(err)
			}
			got := tc.handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
			}})
			if got.Allowed != (tc.want != "") {
				t.Fatalf("answered %+v", got)
			}
			if !got.Allowed {
				return
			}
			encoded, err := json.Marshal(got.Patches)
			if err != nil {
				t.Fatal(err)
			}
			var patches, want any
			if err := json.Unmarshal(encoded, &patches); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, patches); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
