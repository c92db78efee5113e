package validating

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
)

func TestResourceDistribution(t *testing.T) {
	const spec = `, kind: ResourceDistribution, metadata: {name: d}, spec: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}, targets: {includedNamespaces: {list: [{name: a}]}}}}`
	const hub, older = `{apiVersion: apps.kruise.io/v1beta1` + spec, `{apiVersion: apps.kruise.io/v1alpha1` + spec
	policy := edits{"spec.resource": "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: np}, spec: {podSelector: {}}}"}
	kinds, err := distribution.Served([]string{"NetworkPolicy"})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		object   string
		old, new edits
		off      bool
		want     string
	}{
		"a ConfigMap":               {object: hub},
		"the older version":         {object: older, new: edits{"spec.targets.namespaceLabelSelector": "{matchLabels: {a: b}}"}},
		"from another object":       {object: hub, new: edits{"spec.resource": "~", "spec.resourceFrom": "{kind: Secret, namespace: a, name: b}"}},
		"another kind":              {object: hub, new: edits{"spec.resource.kind": "Pod"}, want: "unknown or unsupported resource GroupKind"},
		"a field that is not known": {object: hub, new: edits{"spec.resource.dato": "{a: b}"}, want: `unknown field "dato"`},
		"a further kind":            {object: hub, new: policy},
		"a further kind that is not listed": {object: hub, new: edits{"spec.resource": "~", "spec.resourceFrom": "{kind: LimitRange, namespace: a, name: b}"},
			want: "spec.resourceFrom.kind: Invalid value: \"LimitRange\": kind LimitRange is not distributed here: list it in --resourcedistribution-kinds"},
		"a label of copies that is none": {object: hub, new: edits{"spec.copies": "{labels: {a b: c}}"}, want: "spec.copies.labels"},
		"a name that is none":            {object: hub, new: edits{"spec.resource.metadata.name": "A b"}, want: "spec.resource.metadata.name"},
		"a label that is none":           {object: hub, new: edits{"spec.resource.metadata.labels": "{a b: c}"}, want: "spec.resource.metadata.labels"},
		"included and excluded":          {object: hub, new: edits{"spec.targets.excludedNamespaces": "{list: [{name: x}, {name: a}]}"}, want: "spec.targets.excludedNamespaces.list[1].name: Invalid value: \"a\": ambiguous targets"},
		"a selector that is none":        {object: hub, new: edits{"spec.targets.namespaceSelector": "{matchExpressions: [{key: a, operator: Like}]}"}, want: "spec.targets.namespaceSelector.matchExpressions[0].operator"},
		"such a selector, older":         {object: older, new: edits{"spec.targets.namespaceLabelSelector": "{matchExpressions: [{key: a, operator: Like}]}"}, want: "spec.targets.namespaceLabelSelector.matchExpressions[0].operator"},
		"the gate is off":                {object: hub, off: true, want: "feature-gate ResourceDistributionGate is not enabled"},
		"the gate is off, at a label":    {object: hub, off: true, old: edits{}, new: edits{"metadata.labels": "{a: b}"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "ResourceDistribution"},
				Name: "d", Object: runtime.RawExtension{Raw: edit(t, tc.object, tc.new)},
			}}
			if tc.old != nil {
				asked.Operation, asked.OldObject = admissionv1.Update, runtime.RawExtension{Raw: edit(t, tc.object, tc.old)}
			}
			o := Options{Distributed: kinds}
			if tc.off {
				o.Disabled = map[string]string{"ResourceDistribution": "feature-gate ResourceDistributionGate is not enabled"}
			}
			got := ResourceDistribution(o).Handle(t.Context(), asked)
			if got.Allowed != (tc.want == "") || tc.want != "" && !strings.Contains(got.Result.Message, tc.want) {
				t.Fatalf("allowed is %t, want %q: %+v", got.Allowed, tc.want, got.Result)
			}
			if tc.off && tc.want != "" && got.Result.Code != http.StatusForbidden {
				t.Errorf("it is refused with %d", got.Result.Code)
			}
		})
	}
}
