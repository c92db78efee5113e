package convert

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func statefulSetFiller(from *randfill.Filler) *randfill.Filler {
	return from.NilChance(0.3).NumElements(1, 3).MaxDepth(20).Funcs(
		func(t *corev1.PodTemplateSpec, c randfill.Continue) { t.Spec.NodeName = c.String(8) },
		func(claim *corev1.PersistentVolumeClaim, c randfill.Continue) { claim.Name = c.String(8) },
		func(*metav1.FieldsV1, randfill.Continue) {}, // raw JSON
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31n(9)); c.Bool() {
				*v = intstr.FromString("2-5")
			}
		},
	)
}

func TestStatefulSetRoundTripsLoseNothing(t *testing.T) { fromSeeds(t, statefulSetRoundTrip) }

func statefulSetRoundTrip(t *testing.T, from *randfill.Filler) {
	t.Helper()
	var filled v1beta1.StatefulSet
	statefulSetFiller(from).Fill(&filled)
	survives(t, "StatefulSet", &filled)
}

func FuzzStatefulSetRoundTrips(f *testing.F) { fromBytes(f, statefulSetRoundTrip) }

// TestRecordedStatefulSets takes objects of a cluster of the original to the older version and back: only the version may change.
func TestRecordedStatefulSets(t *testing.T) {
	data, err := os.ReadFile("testdata/statefulsets.json")
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	if err := json.Unmarshal(data, &objects); err != nil || len(objects) == 0 {
		t.Fatalf("read %d objects: %v", len(objects), err)
	}
	for _, object := range objects {
		want := &unstructured.Unstructured{Object: object}
		older, err := Object(want, "apps.kruise.io/v1alpha1")
		if err != nil {
			t.Fatal(err)
		}
		if got := older.GetAPIVersion(); got != "apps.kruise.io/v1alpha1" {
			t.Errorf("converted to %s", got)
		}
		if diff := cmp.Diff(object["spec"], older.Object["spec"]); diff != "" {
			t.Errorf("spec in the older version (-want +got):\n%s", diff)
		}
		back, err := Object(older, "apps.kruise.io/v1beta1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
