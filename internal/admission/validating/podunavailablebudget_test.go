package validating

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

const (
	budgetBySelector = `{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: b, namespace: ns}, spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}}`
	budgetByTarget   = `{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: b, namespace: ns}, spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minAvailable: 50%}}`
	olderBudget      = `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: b, namespace: ns}, spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}}`
)

func TestPodUnavailableBudget(t *testing.T) {
	annotations := func(text string) edits { return edits{"metadata.annotations": text} }
	cases := map[string]struct {
		object   string
		old, new edits // an update if there are old ones
		beside   []string
		gates    string
		want     string
		warning  string
	}{
		"by a selector":                  {object: budgetBySelector},
		"by a target":                    {object: budgetByTarget},
		"the older version":              {object: olderBudget, new: annotations(`{kruise.io/pub-protect-operations: "EVICT, UPDATE", pub.kruise.io/protect-total-replicas: "3"}`)},
		"a selector that can't be read":  {object: budgetBySelector, new: edits{"spec.selector.matchExpressions": "[{key: a, operator: Like}]"}, want: "spec.selector.matchExpressions[0].operator: Invalid value"},
		"all Pods ignored":               {object: budgetBySelector, new: edits{"spec.ignoredPodSelector": "{}"}, want: "spec.ignoredPodSelector: Required value"},
		"all Pods ignored, older":        {object: olderBudget, new: annotations(`{pub.kruise.io/ignored-pod-selector: "{}"}`), want: "spec.ignoredPodSelector: Required value"},
		"an unknown operation, noted":    {object: olderBudget, new: annotations("{kruise.io/pub-protect-operations: REBOOT}"), want: "metadata.annotations[kruise.io/pub-protect-operations]: Invalid value"},
		"a total that is no number":      {object: olderBudget, new: annotations("{pub.kruise.io/protect-total-replicas: many}"), want: "metadata.annotations[pub.kruise.io/protect-total-replicas]: Invalid value"},
		"a selector that is no JSON":     {object: olderBudget, new: annotations("{pub.kruise.io/ignored-pod-selector: nobody}"), want: "metadata.annotations[pub.kruise.io/ignored-pod-selector]: Invalid value"},
		"two totals":                     {object: budgetBySelector, new: edits{"spec.protectTotalReplicas": "3", "metadata.annotations": `{pub.kruise.io/protect-total-replicas: "4"}`}, want: "must be the same as spec.protectTotalReplicas, which is 3"},
		"the same total twice":           {object: budgetBySelector, new: edits{"spec.protectTotalReplicas": "3", "metadata.annotations": `{pub.kruise.io/protect-total-replicas: "3"}`}},
		"another number":                 {object: budgetByTarget, old: edits{}, new: edits{"spec.minAvailable": "3"}},
		"a label on one of before":       {object: budgetByTarget, old: edits{"spec.maxUnavailable": "1"}, new: edits{"spec.maxUnavailable": "1", "metadata.labels": "{a: b}"}, gates: "A and B"},
		"gates are off":                  {object: budgetByTarget, gates: "A and B", want: "feature-gates A and B are not enabled"},
		"gates are off, at a change":     {object: budgetByTarget, gates: "A and B", old: edits{}, new: edits{"spec.minAvailable": "3"}, want: "feature-gates A and B are not enabled"},
		"the same workload":              {object: budgetByTarget, beside: []string{"targetRef: {apiVersion: apps/v1beta2, kind: Deployment, name: web}"}, want: "spec.targetRef: Forbidden: PodUnavailableBudget other-0 guards this workload already"},
		"another workload":               {object: budgetByTarget, beside: []string{"targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}"}},
		"the same labels":                {object: budgetBySelector, beside: []string{"selector: {matchExpressions: [{key: app, operator: In, values: [web, shop]}]}"}, want: "spec.selector: Forbidden: PodUnavailableBudget other-0 may select the same Pods"},
		"other values of the same label": {object: budgetBySelector, beside: []string{"selector: {matchLabels: {app: shop}}"}},
		"other labels":                   {object: budgetBySelector, beside: []string{"selector: {matchLabels: {tier: ui}}"}},
		"one of each way":                {object: budgetBySelector, beside: []string{"targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}"}, warning: "PodUnavailableBudget other-0 guards a workload by its targetRef"},
		"one of each way, other way":     {object: budgetByTarget, beside: []string{"selector: {matchLabels: {tier: ui}}"}, warning: "PodUnavailableBudget other-0 guards Pods by its selector"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			there := fake.NewClientBuilder().WithScheme(scheme)
			for i, spec := range tc.beside {
				other := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other-" + string(rune('0'+i))}}
				if err := yaml.UnmarshalStrict([]byte(spec), &other.Spec); err != nil {
					t.Fatal(err)
				}
				there.WithObjects(other)
			}
			asked := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "policy.kruise.io", Version: "v1beta1", Kind: "PodUnavailableBudget"},
				Name: "b", Namespace: "ns", Object: runtime.RawExtension{Raw: edit(t, tc.object, tc.new)},
			}}
			if tc.old != nil {
				asked.Operation, asked.OldObject = admissionv1.Update, runtime.RawExtension{Raw: edit(t, tc.object, tc.old)}
			}
			o := Options{Live: there.Build()}
			if tc.gates != "" {
				o.Disabled = map[string]string{"PodUnavailableBudget": "feature-gates " + tc.gates + " are not enabled"}
			}
			got := PodUnavailableBudget(o).Handle(t.Context(), asked)
			if got.Allowed != (tc.want == "") {
				t.Fatalf("allowed is %t: %+v", got.Allowed, got.Result)
			}
			if tc.want != "" && !strings.Contains(got.Result.Message, tc.want) {
				t.Errorf("refused with %q, want %q", got.Result.Message, tc.want)
			}
			if tc.gates != "" && tc.want != "" && got.Result.Code != http.StatusBadRequest {
				t.Errorf("refused with code %d", got.Result.Code)
			}
			if warned := strings.Join(got.Warnings, "\n"); (tc.warning == "") != (warned == "") || !strings.Contains(warned, tc.warning) {
				t.Errorf("the warnings are %q, want %q", warned, tc.warning)
			}
		})
	}
}
