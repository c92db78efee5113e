package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

func TestBudgetRoundTripsLoseNothing(t *testing.T) {
	fromSeeds(t, budgetFromHub)
	fromSeeds(t, budgetFromSpoke)
}

func FuzzBudgetRoundTrips(f *testing.F) { fromBytes(f, budgetFromHub, budgetFromSpoke) }

func budgetFiller(from *randfill.Filler) *randfill.Filler {
	return from.NilChance(0.4).NumElements(1, 3).MaxDepth(20).Funcs(
		func(*metav1.TypeMeta, randfill.Continue) {}, // who asks for a version names it
		func(*metav1.FieldsV1, randfill.Continue) {}, // raw JSON
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31n(9)); c.Bool() {
				*v = intstr.FromString("20%")
			}
		},
		func(o *v1beta1.PubOperation, c randfill.Continue) {
			*o = []v1beta1.PubOperation{"DELETE", "UPDATE", "EVICT", "RESIZE"}[c.Intn(4)]
		},
		func(s *v1beta1.PodUnavailableBudgetSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			if s.ProtectTotalReplicas != nil {
				*s.ProtectTotalReplicas = 1 + c.Int31n(99)
			}
		},
	)
}

func budgetFromHub(t *testing.T, from *randfill.Filler) {
	t.Helper()
	comesBack(t, budgetFiller(from), PodUnavailableBudgetFromHub, PodUnavailableBudgetToHub)
}

// budgetFromSpoke checks that a budget of the older version comes back from storage saying the same, in the same words but for the blanks.
func budgetFromSpoke(t *testing.T, from *randfill.Filler) {
	t.Helper()
	comesBack(t, budgetFiller(from), PodUnavailableBudgetToHub, PodUnavailableBudgetFromHub, func(b *v1alpha1.PodUnavailableBudget) {
		if len(b.Name)%2 == 0 {
			b.Annotations = with(b.Annotations, keys.ProtectOperations, []string{"DELETE", "EVICT,RESIZE", "", "REBOOT"}[len(b.Namespace)%4])
			b.Annotations = with(b.Annotations, keys.ProtectTotalReplicas, []string{"7", "0", "many"}[len(b.GenerateName)%3])
			b.Annotations = with(b.Annotations, keys.IgnoredPodSelector, []string{`{"matchLabels":{"a":"b"}}`, "null", "{"}[len(b.UID)%3])
		}
	})
}

func TestBudgetAnnotationsAreFieldsInTheHub(t *testing.T) {
	const head = "kind: PodUnavailableBudget\nmetadata: {name: b, namespace: ns"
	cases := map[string]struct{ older, want string }{
		"all three": {
			`, annotations: {note: kept, kruise.io/pub-protect-operations: "EVICT, UPDATE", pub.kruise.io/protect-total-replicas: "15", pub.kruise.io/ignored-pod-selector: '{"matchLabels":{"tier":"test"}}'}}
spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}`,
			`, annotations: {note: kept}}
spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1, protectOperations: [EVICT, UPDATE], protectTotalReplicas: 15, ignoredPodSelector: {matchLabels: {tier: test}}}`,
		},
		"none": {
			"}\nspec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minAvailable: 25%}",
			"}\nspec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minAvailable: 25%}",
		},
		"what can't be read stays": {
			`, annotations: {kruise.io/pub-protect-operations: "REBOOT", pub.kruise.io/protect-total-replicas: many, pub.kruise.io/ignored-pod-selector: "{"}}
spec: {maxUnavailable: 1}
status: {unavailableAllowed: 1, disruptedPods: {p: "2026-01-05T08:00:00Z"}}`,
			`, annotations: {kruise.io/pub-protect-operations: "REBOOT", pub.kruise.io/protect-total-replicas: many, pub.kruise.io/ignored-pod-selector: "{"}}
spec: {maxUnavailable: 1}
status: {unavailableAllowed: 1, disruptedPods: {p: "2026-01-05T08:00:00Z"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parse := func(text, version string) *unstructured.Unstructured {
				u := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(head+text), &u.Object); err != nil {
					t.Fatal(err)
				}
				u.SetAPIVersion("policy.kruise.io/" + version)
				return u
			}
			got, err := Object(parse(tc.older, "v1alpha1"), "policy.kruise.io/v1beta1")
			if err != nil {
				t.Fatal(err)
			}
			want := parse(tc.want, "v1beta1")
			if diff := cmp.Diff(plain(t, want), plain(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// plain returns an object as it goes over the wire, whatever its numbers were made of.
func plain(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
