package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"
)

func TestDistributionRoundTripsLoseNothing(t *testing.T) {
	filler := func(from *randfill.Filler) *randfill.Filler {
		return from.NilChance(0.3).NumElements(1, 3).MaxDepth(20).Funcs(
			func(*metav1.TypeMeta, randfill.Continue) {}, // who asks for a version names it
			func(*metav1.FieldsV1, randfill.Continue) {}, // raw JSON
			func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(c.String(8)) },
		)
	}
	fromSeeds(t, func(t *testing.T, from *randfill.Filler) {
		t.Helper()
		comesBack(t, filler(from), ResourceDistributionFromHub, ResourceDistributionToHub)
	})
	fromSeeds(t, func(t *testing.T, from *randfill.Filler) {
		t.Helper()
		comesBack(t, filler(from), ResourceDistributionToHub, ResourceDistributionFromHub)
	})
}

// TestDistributionsAreSpelledAsTheVersionDoes goes through what the API server is served: the resource itself stays as it came.
func TestDistributionsAreSpelledAsTheVersionDoes(t *testing.T) {
	parse := func(selector, failed string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		text := `
kind: ResourceDistribution
metadata: {name: d}
spec:
  resource: {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: b}, other: {c: d}}
  targets: {allNamespaces: true, includedNamespaces: {list: [{name: a}]}, excludedNamespaces: {list: [{name: b}]}, ` + selector + `: {matchLabels: {x: "1"}}}
status:
  desired: 2
  conditions: [{type: ConflictOccurred, status: "True", lastTransitionTime: "2026-01-05T08:00:00Z", reason: taken, ` + failed + `: [a]}]`
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	older, hub := parse("namespaceLabelSelector", "failedNamespace"), parse("namespaceSelector", "failedNamespaces")
	older.SetAPIVersion("apps.kruise.io/v1alpha1")
	hub.SetAPIVersion("apps.kruise.io/v1beta1")
	for version, tc := range map[string]struct{ from, to *unstructured.Unstructured }{
		"apps.kruise.io/v1beta1": {older, hub}, "apps.kruise.io/v1alpha1": {hub, older},
	} {
		got, err := Object(tc.from, version)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain(t, tc.to), plain(t, got)); diff != "" {
			t.Errorf("to %s (-want +got):\n%s", version, diff)
		}
	}
}
