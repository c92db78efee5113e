package convert

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func imageRules() []any {
	return []any{
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31n(9)); c.Bool() {
				*v = intstr.FromString("5")
			}
		},
		func(m *v1beta1.ReferenceMode, c randfill.Continue) {
			if *m = v1beta1.ReferenceBatch; c.Bool() {
				*m = ""
			}
		},
		func(*metav1.FieldsV1, randfill.Continue) {}, // raw JSON
		// Who asks for a version names it.
		func(t *metav1.TypeMeta, _ randfill.Continue) { *t = metav1.TypeMeta{} },
	}
}

// roundTrip checks that an object survives the other version, and that converting it leaves it alone.
func roundTrip[A, B any](t *testing.T, fill *randfill.Filler, there func(*A, *B), back func(*B, *A)) {
	t.Helper()
	var want, before, got A
	var middle B
	fill.Fill(&want)
	there(&want, &middle)
	back(&middle, &before)
	there(&want, &middle)
	back(&middle, &got)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%T (-want +got):\n%s", want, diff)
	}
	if diff := cmp.Diff(before, got); diff != "" {
		t.Errorf("%T converted twice (-first +second):\n%s", want, diff)
	}
}

func imageRoundTrips(t *testing.T, fill func() *randfill.Filler) {
	t.Helper()
	var job v1beta1.ImagePullJob
	fill().Fill(&job)
	survives(t, "ImagePullJob", &job)
	var list v1beta1.ImageListPullJob
	fill().Fill(&list)
	survives(t, "ImageListPullJob", &list)
	roundTrip(t, fill(), NodeImageFromHub, NodeImageToHub)
	roundTrip(t, fill(), NodeImageToHub, NodeImageFromHub)
}

func TestImageRoundTripsLoseNothing(t *testing.T) {
	for seed := range int64(seeds) {
		imageRoundTrips(t, func() *randfill.Filler {
			return randfill.New().Funcs(imageRules()...).NilChance(0.3).NumElements(1, 3).RandSource(rand.NewSource(seed))
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzImageRoundTrips(f *testing.F) {
	f.Add([]byte("a job of any kind"))
	f.Fuzz(func(t *testing.T, data []byte) {
		imageRoundTrips(t, func() *randfill.Filler {
			return randfill.NewFromGoFuzz(data).Funcs(imageRules()...).NilChance(0.3).NumElements(1, 3)
		})
	})
}

func TestSecretModesInTheOlderVersion(t *testing.T) {
	nodeImage := func(annotations map[string]string) *v1alpha1.NodeImage {
		return &v1alpha1.NodeImage{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: annotations},
			Spec: v1alpha1.NodeImageSpec{Images: map[string]v1alpha1.ImageSpec{"nginx": {PullSecrets: []v1alpha1.ReferenceObject{
				{Namespace: "ns", Name: "by-hand"}, {Namespace: "config", Name: "copied"},
			}}}},
		}
	}
	for name, tc := range map[string]struct {
		annotation string
		want       v1beta1.ReferenceMode
	}{
		"a mode that is noted comes back":   {`{"nginx":[{"namespace":"config","name":"copied","mode":"batch"}]}`, v1beta1.ReferenceBatch},
		"one of another image does not":     {`{"redis":[{"namespace":"config","name":"copied","mode":"batch"}]}`, ""},
		"what can't be read is no mode":     {`batch`, ""},
		"what can be read in part is none":  {`{"nginx":[{"namespace":"config","name":"copied","mode":"batch"}],"redis":7}`, ""},
		"no annotation is no mode, as ever": {``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got v1beta1.NodeImage
			NodeImageToHub(nodeImage(map[string]string{keys.NodeImageSecretModes: tc.annotation, "a": "b"}), &got)
			want := []v1beta1.ReferenceObject{{Namespace: "ns", Name: "by-hand"}, {Namespace: "config", Name: "copied", Mode: tc.want}}
			if diff := cmp.Diff(want, got.Spec.Images["nginx"].PullSecrets); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"a": "b"}, got.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNodeImagesOnTheWire converts as the API server asks for it, which carries over what no type of ours knows.
func TestNodeImagesOnTheWire(t *testing.T) {
	hub := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": hubVersion, "kind": "NodeImage",
		"metadata": map[string]any{"name": "n1", "labels": map[string]any{"zone": "a"}},
		"spec": map[string]any{"images": map[string]any{"nginx": map[string]any{
			"pullSecrets": []any{map[string]any{"namespace": "config", "name": "copied", "mode": "batch"}},
			"tags":        []any{map[string]any{"tag": "1.9", "createdAt": "2026-01-02T03:04:05Z", "version": int64(3)}},
		}}},
		"status": map[string]any{"desired": int64(1), "later": "kept"},
	}}
	spoke, err := Object(hub, spokeVersion)
	if err != nil {
		t.Fatal(err)
	}
	if _, found, _ := unstructured.NestedString(spoke.Object, "metadata", "annotations", keys.NodeImageSecretModes); !found {
		t.Error("the older version does not say the modes")
	}
	back, err := Object(spoke, hubVersion)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hub.Object, back.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
