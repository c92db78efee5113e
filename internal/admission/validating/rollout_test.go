package validating

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

const (
	newRollout = `
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: web, namespace: ns}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  strategy: {canary: {steps: [{replicas: 1}, {replicas: 50%}, {replicas: 100%}]}}
`
	oldRollout = `
apiVersion: rollouts.kruise.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: ns}
spec:
  objectRef: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
  strategy: {canary: {steps: [{weight: 5}, {weight: 100}]}}
`
)

func rolloutAnswer(t *testing.T, object, old []byte) []string {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	small := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: "ns"}}
	small.Spec.Replicas = new(int32(5))
	taken := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "ns"}}
	taken.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps/v1beta2", Kind: "Deployment", Name: "taken"}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(taken, small).Build()
	request := admissionv1.AdmissionRequest{
		UID: "1", Name: "web", Namespace: "ns", Operation: admissionv1.Create,
		Kind:   metav1.GroupVersionKind{Group: "rollouts.kruise.io", Version: "v1beta1", Kind: "Rollout"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}
	if old != nil {
		request.Operation = admissionv1.Update
	}
	hook := &webhook.Admission{Handler: Rollout(RolloutOptions{Live: reader, PartitionPercentLimit: 50})}
	answer := hook.Handle(context.Background(), admission.Request{AdmissionRequest: request})
	return append(causes(answer), answer.Warnings...)
}

func wantAnswer(t *testing.T, got []string, want string) {
	t.Helper()
	if !strings.Contains(strings.Join(got, "; "), want) {
		t.Errorf("answered %q, want %q", got, want)
	}
}

func TestRollouts(t *testing.T) {
	const ingress = `{canary: {trafficRoutings: [{service: web, ingress: {name: web}}], steps: `
	for name, tc := range map[string]struct {
		edits edits
		want  string
	}{
		"as it is":                 {nil, "allowed"},
		"a step of no Pods":        {edits{"spec.strategy": "{canary: {steps: [{replicas: 0}]}}"}, "must be 1 or more, or a percentage from 1% to 100%"},
		"a step of fewer":          {edits{"spec.strategy": "{canary: {steps: [{replicas: -1}]}}"}, "must be 1 or more"},
		"a Job":                    {edits{"spec.workloadRef": "{apiVersion: batch/v1, kind: Job, name: web}"}, "spec.workloadRef"},
		"a ReplicaSet":             {edits{"spec.workloadRef.kind": "ReplicaSet"}, "can't be released in steps"},
		"a workload that is taken": {edits{"spec.workloadRef.name": "taken"}, "Rollout other has this workload"},
		"fewer Pods by number":     {edits{"spec.strategy": "{canary: {steps: [{replicas: 2}, {replicas: 1}]}}"}, "is less than 2 of the step before"},
		"fewer Pods by percentage": {edits{"spec.strategy": "{canary: {steps: [{replicas: 50%}, {replicas: 9%}]}}"}, "is less than 50% of the step before"},
		"percentages that come to the same Pods": {edits{"spec.workloadRef.name": "small", "spec.strategy": "{canary: {steps: [{replicas: 10%}, {replicas: 20%}]}}"},
			"step 2 of 2: 20% of 5 Pods are 1, as many as at step 1"},
		"numbers and percentages": {edits{"spec.strategy": "{canary: {steps: [{replicas: 50%}, {replicas: 1}, {replicas: 100%}]}}"}, "allowed"},
		"many Pods with traffic":  {edits{"spec.strategy": ingress + "[{replicas: 51%, traffic: 20%}]}}"}, "is more than 50% in a step with traffic"},
		"many Pods of a second Deployment": {
			edits{"spec.strategy": strings.Replace(ingress, "{canary: {", "{canary: {enableExtraWorkloadForCanary: true, ", 1) + "[{replicas: 51%, traffic: 20%}]}}"}, "allowed"},
		"many Pods without traffic": {edits{"spec.strategy": ingress + "[{replicas: 20%, traffic: 20%}, {replicas: 100%}]}}"}, "allowed"},
		"a header on an Ingress":    {edits{"spec.strategy": ingress + "[{replicas: 1, matches: [{headers: [{name: a, value: b}]}]}]}}"}, "allowed"},
		"two headers on an Ingress": {edits{"spec.strategy": ingress + "[{replicas: 1, matches: [{headers: [{name: a, value: b}, {name: c, value: d}]}]}]}}"}, "one header only"},
		"a path on an Ingress":      {edits{"spec.strategy": ingress + "[{replicas: 1, matches: [{path: {value: /a}}]}]}}"}, "one header only"},
		"a query on an Ingress":     {edits{"spec.strategy": ingress + "[{replicas: 1, matches: [{queryParams: [{name: a, value: b}]}]}]}}"}, "one header only"},
		"two Services":              {edits{"spec.strategy": "{canary: {trafficRoutings: [{service: web, ingress: {name: web}}, {service: api, ingress: {name: api}}], steps: [{replicas: 1}]}}"}, "allowed"},
		"one Ingress for two Services": {edits{"spec.strategy": "{canary: {trafficRoutings: [{service: web, ingress: {name: web}}, {service: api, ingress: {name: web}}], steps: [{replicas: 1}]}}"},
			"trafficRoutings[1].ingress.name: Invalid value: \"web\": Ingress is named twice"},
		"one route by two ways": {edits{"spec.strategy": "{canary: {trafficRoutings: [{service: web, gateway: {httpRouteName: web}, " +
			"customNetworkRefs: [{apiVersion: gateway.networking.k8s.io/v1beta1, kind: HTTPRoute, name: web}]}], steps: [{replicas: 1}]}}"}, "HTTPRoute is named twice"},
		"one Service twice": {edits{"spec.strategy": "{canary: {trafficRoutings: [{service: web, ingress: {name: web}}, {service: web, gateway: {httpRouteName: web}}], steps: [{replicas: 1}]}}"},
			"Service is named twice"},
		"a TrafficRouting beside": {edits{"spec.strategy": ingress + "[{replicas: 1}]}}", "metadata.annotations": "{rollouts.kruise.io/trafficrouting: x}"}, "can't be used beside trafficRoutings"},
	} {
		t.Run(name, func(t *testing.T) { wantAnswer(t, rolloutAnswer(t, edit(t, newRollout, tc.edits), nil), tc.want) })
	}
}

func TestRolloutsOfTheOlderVersion(t *testing.T) {
	wantAnswer(t, rolloutAnswer(t, edit(t, oldRollout, nil), nil), "allowed")
	for name, tc := range map[string]struct {
		edits edits
		want  string
	}{
		"without a workload": {edits{"spec.objectRef": "{}"}, "spec.objectRef.workloadRef"},
		"without a strategy": {edits{"spec.strategy": "{}"}, "canary or blueGreen is needed"},
		"weights that fall":  {edits{"spec.strategy": "{canary: {steps: [{weight: 50}, {weight: 5}]}}"}, "is less than 50% of the step before"},
		"a blueGreen style":  {edits{"metadata.annotations": "{rollouts.kruise.io/rolling-style: bluegreen}"}, "write the Rollout in v1beta1"},
	} {
		t.Run(name, func(t *testing.T) { wantAnswer(t, rolloutAnswer(t, edit(t, oldRollout, tc.edits), nil), tc.want) })
	}
	stored := edit(t, newRollout, edits{"spec.strategy": "{blueGreen: {steps: [{replicas: 100%}]}}"})
	wantAnswer(t, rolloutAnswer(t, edit(t, oldRollout, nil), stored), "write the Rollout in v1beta1")
}

func TestAStoredRolloutCanBeChangedElsewhere(t *testing.T) {
	bad := edits{"spec.strategy": "{canary: {steps: [{replicas: 2}, {replicas: 1}]}}"}
	paused := edits{"spec.strategy": "{paused: true, canary: {steps: [{replicas: 2}, {replicas: 1}]}}"}
	if diff := cmp.Diff([]string{"allowed"}, rolloutAnswer(t, edit(t, newRollout, paused), edit(t, newRollout, bad))); diff != "" {
		t.Error(diff)
	}
}
