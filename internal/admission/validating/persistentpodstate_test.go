package validating

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func TestPersistentPodState(t *testing.T) {
	const hub = `{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: p, namespace: ns}, spec: {targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}, requiredPersistentTopology: {keys: [zone]}}}`
	const older = `{apiVersion: apps.kruise.io/v1alpha1, kind: PersistentPodState, metadata: {name: p, namespace: ns}, spec: {targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}, requiredPersistentTopology: {nodeTopologyKeys: [zone]}}}`
	game := edits{"spec.targetRef": "{apiVersion: game.io/v1, kind: GameSet, name: web}"}
	cases := map[string]struct {
		object   string
		old, new edits // an update if there are old ones
		kinds    string
		beside   string
		want     string
	}{
		"a StatefulSet":              {object: hub},
		"one of ours":                {object: hub, new: edits{"spec.targetRef.apiVersion": "apps.kruise.io/v1alpha1"}},
		"the older version":          {object: older},
		"a CloneSet":                 {object: hub, new: edits{"spec.targetRef": "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}"}},
		"a CloneSet of others":       {object: hub, new: edits{"spec.targetRef": "{apiVersion: example.com/v1, kind: CloneSet, name: web}"}, want: "spec.targetRef.kind"},
		"of another group":           {object: hub, new: edits{"spec.targetRef.apiVersion": "example.com/v1"}, want: "targetRef.Kind must be StatefulSet or in PPS_Watch_Custom_Workload_WhiteList"},
		"a kind that nobody named":   {object: hub, new: game, want: "spec.targetRef.kind"},
		"a kind that is named":       {object: hub, new: game, kinds: `{"workloads":[{"Group":"game.io","Version":"v1beta1","Kind":"GameSet"}]}`},
		"a list that can't be read":  {object: hub, new: game, kinds: "{", want: "reading PPS_Watch_Custom_Workload_WhiteList"},
		"what is no label":           {object: hub, new: edits{"spec.requiredPersistentTopology.keys": "[a b]"}, want: "spec.requiredPersistentTopology.keys[0]: Invalid value"},
		"what is no label, older":    {object: older, new: edits{"spec.requiredPersistentTopology.nodeTopologyKeys": "[a b]"}, want: "spec.requiredPersistentTopology.nodeTopologyKeys[0]: Invalid value"},
		"what is no annotation":      {object: hub, new: edits{"spec.persistentPodAnnotations": "[{key: a b}]"}, want: "spec.persistentPodAnnotations[0].key: Invalid value"},
		"a preferred no label":       {object: hub, new: edits{"spec.preferredPersistentTopology": "[{weight: 1, preference: {keys: [ok, a b]}}]"}, want: "spec.preferredPersistentTopology[0].preference.keys[1]: Invalid value"},
		"a second one":               {object: hub, beside: "web", want: "targetRef is in conflict with other PersistentPodState other"},
		"beside that of another one": {object: hub, beside: "db"},
		"a change beside a second":   {object: hub, old: edits{}, new: edits{"spec.maxAgeSeconds": "5"}, beside: "web"},
		"stored with what is wrong":  {object: hub, old: edits{"spec.requiredPersistentTopology.keys": "[a b]"}, new: edits{"spec.requiredPersistentTopology.keys": "[a b]", "spec.maxAgeSeconds": "5"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := v1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			there := fake.NewClientBuilder().WithScheme(scheme)
			if tc.kinds != "" {
				there.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: keys.Configuration}, Data: map[string]string{keys.PodStateKinds: tc.kinds}})
			}
			if tc.beside != "" {
				other := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}
				other.Spec.TargetRef = v1beta1.PersistentPodStateTarget{APIVersion: "apps/v1", Kind: "StatefulSet", Name: tc.beside}
				there.WithObjects(other)
			}
			asked := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "PersistentPodState"},
				Name: "p", Namespace: "ns", Object: runtime.RawExtension{Raw: edit(t, tc.object, tc.new)},
			}}
			if tc.old != nil {
				asked.Operation, asked.OldObject = admissionv1.Update, runtime.RawExtension{Raw: edit(t, tc.object, tc.old)}
			}
			got := PersistentPodState(Options{Live: there.Build(), Namespace: "kruise-system"}).Handle(t.Context(), asked)
			if got.Allowed != (tc.want == "") {
				t.Fatalf("allowed is %t: %+v", got.Allowed, got.Result)
			}
			if tc.want != "" && !strings.Contains(got.Result.Message, tc.want) {
				t.Errorf("refused with %q, want %q", got.Result.Message, tc.want)
			}
		})
	}
}
