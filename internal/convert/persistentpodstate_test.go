package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"
)

func TestPodStateRoundTripsLoseNothing(t *testing.T) {
	filler := func(from *randfill.Filler) *randfill.Filler {
		return from.NilChance(0.3).NumElements(1, 3).MaxDepth(20).Funcs(
			func(*metav1.TypeMeta, randfill.Continue) {}, // who asks for a version names it
			func(*metav1.FieldsV1, randfill.Continue) {}, // raw JSON
		)
	}
	fromSeeds(t, func(t *testing.T, from *randfill.Filler) {
		t.Helper()
		comesBack(t, filler(from), PersistentPodStateFromHub, PersistentPodStateToHub)
	})
	fromSeeds(t, func(t *testing.T, from *randfill.Filler) {
		t.Helper()
		comesBack(t, filler(from), PersistentPodStateToHub, PersistentPodStateFromHub)
	})
}

// TestPodStateKeysAreSpelledAsTheVersionDoes goes through what the API server is served.
func TestPodStateKeysAreSpelledAsTheVersionDoes(t *testing.T) {
	parse := func(keys string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		text := `
kind: PersistentPodState
metadata: {name: web, namespace: ns}
spec:
  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}
  requiredPersistentTopology: {` + keys + `: [zone]}
  preferredPersistentTopology: [{weight: 100, preference: {` + keys + `: [host]}}]
status: {observedGeneration: 1, podStates: {web-0: {nodeName: n1, nodeTopologyLabels: {zone: a}}}}`
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	older, hub := parse("nodeTopologyKeys"), parse("keys")
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
