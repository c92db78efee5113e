package validating

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const newTrafficRouting = `
apiVersion: rollouts.kruise.io/v1alpha1
kind: TrafficRouting
metadata: {name: web, namespace: ns}
spec:
  objectRef: [{service: web, ingress: {name: web}}]
  strategy: {matches: [{headers: [{name: user, value: beta}]}]}
`

func TestTrafficRoutings(t *testing.T) {
	for name, tc := range map[string]struct {
		edits edits
		want  string
	}{
		"as it is":                         {nil, "allowed"},
		"a weight of an Ingress":           {edits{"spec.strategy": "{weight: 20}"}, "allowed"},
		"two headers of an Ingress":        {edits{"spec.strategy": "{matches: [{headers: [{name: a, value: b}, {name: c, value: d}]}]}"}, "one header only"},
		"two matches of an Ingress":        {edits{"spec.strategy": "{matches: [{headers: [{name: a, value: b}]}, {headers: [{name: c, value: d}]}]}"}, "one header only"},
		"two headers of a class by script": {edits{"spec.strategy": "{matches: [{headers: [{name: a, value: b}, {name: c, value: d}]}]}", "spec.objectRef": "[{service: web, ingress: {name: web, classType: mine}}]"}, "allowed"},
		"a match of everything":            {edits{"spec.strategy": "{matches: [{}]}"}, "an empty match is every request"},
		"a weight of a route":              {edits{"spec.strategy": "{weight: 20}", "spec.objectRef": "[{service: web, gateway: {httpRouteName: web}}]"}, "use matches"},
		"an Ingress twice":                 {edits{"spec.objectRef": "[{service: web, ingress: {name: web}}, {service: api, ingress: {name: web}}]"}, "Ingress is named twice"},
	} {
		t.Run(name, func(t *testing.T) {
			hook := &webhook.Admission{Handler: TrafficRouting()}
			answer := hook.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "1", Name: "web", Namespace: "ns", Operation: admissionv1.Create,
				Kind:   metav1.GroupVersionKind{Group: "rollouts.kruise.io", Version: "v1alpha1", Kind: "TrafficRouting"},
				Object: runtime.RawExtension{Raw: edit(t, newTrafficRouting, tc.edits)},
			}})
			wantAnswer(t, causes(answer), tc.want)
		})
	}
}
