package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestWorkloadSpreadRoundTripsLoseNothing(t *testing.T) {
	fromSeeds(t, spreadFromHub)
	fromSeeds(t, spreadFromSpoke)
}

func FuzzWorkloadSpreadRoundTrips(f *testing.F) { fromBytes(f, spreadFromHub, spreadFromSpoke) }

func spreadFiller(from *randfill.Filler) *randfill.Filler {
	return from.NilChance(0.4).NumElements(1, 3).MaxDepth(20).Funcs(
		func(*metav1.TypeMeta, randfill.Continue) {}, // who asks for a version names it
		func(*metav1.FieldsV1, randfill.Continue) {}, // raw JSON
		func(r *runtime.RawExtension, c randfill.Continue) {
			if c.Bool() {
				r.Raw = []byte(`{"metadata":{"labels":{"a":"b"}}}`)
			}
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31n(9)); c.Bool() {
				*v = intstr.FromString("20%")
			}
		},
		func(cond *metav1.Condition, c randfill.Continue) {
			c.FillNoCustom(cond)
			cond.ObservedGeneration = 0
		},
		func(cond *v1alpha1.WorkloadSpreadSubsetCondition, c randfill.Continue) {
			c.FillNoCustom(cond)
			cond.Reason = "Sufficient"
		},
	)
}

func spreadFromHub(t *testing.T, from *randfill.Filler) {
	t.Helper()
	comesBack(t, spreadFiller(from), WorkloadSpreadFromHub, WorkloadSpreadToHub, func(s *v1beta1.WorkloadSpread) {
		reasoned(s.Status.SubsetStatuses)
		for _, list := range s.Status.VersionedSubsetStatuses {
			reasoned(list)
		}
	})
}

// reasoned gives each condition a reason, as the schema wants it.
func reasoned(statuses []v1beta1.WorkloadSpreadSubsetStatus) {
	for _, status := range statuses {
		for i := range status.Conditions {
			status.Conditions[i].Reason = "Sufficient"
		}
	}
}

func spreadFromSpoke(t *testing.T, from *randfill.Filler) {
	t.Helper()
	comesBack(t, spreadFiller(from), WorkloadSpreadToHub, WorkloadSpreadFromHub)
}

// TestWorkloadSpreadOnTheWire converts as the API server asks for it: fields that this build does not know stay.
func TestWorkloadSpreadOnTheWire(t *testing.T) {
	const alpha = `
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  later: true
  subsets:
  - name: a
    requiredNodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [a]}]}
    preferredNodeSelectorTerms: [{weight: 1, preference: {matchExpressions: [{key: ssd, operator: Exists}]}}]
    maxReplicas: 30%
    patch: {metadata: {labels: {zone: a}}}
status:
  subsetStatuses:
  - {name: a, replicas: 1, missingReplicas: 2, conditions: [{type: Schedulable, status: "True"}]}
`
	const beta = `
apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  later: true
  subsets:
  - name: a
    requiredNodeSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}
    preferredNodeSelector: [{weight: 1, preference: {matchExpressions: [{key: ssd, operator: Exists}]}}]
    maxReplicas: 30%
    patch: {metadata: {labels: {zone: a}}}
status:
  subsetStatuses:
  - name: a
    replicas: 1
    missingReplicas: 2
    conditions: [{type: Schedulable, status: "True", reason: Unknown, message: "", lastTransitionTime: null}]
`
	read := func(text string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
			t.Fatal(err)
		}
		return out
	}
	text := func(object any) string {
		out, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	got, err := Object(read(alpha), "apps.kruise.io/v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(read(beta)), text(got)); diff != "" {
		t.Errorf("to the hub (-want +got):\n%s", diff)
	}
	back, err := Object(got, "apps.kruise.io/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(back.Object, "spec")
	want, _, _ := unstructured.NestedMap(read(alpha).Object, "spec")
	if diff := cmp.Diff(text(want), text(spec)); diff != "" {
		t.Errorf("and back (-want +got):\n%s", diff)
	}
}
