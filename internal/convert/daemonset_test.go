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

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// daemonSetFiller fills what has been through defaulting and validation; only such objects are stored.
func daemonSetFiller(from *randfill.Filler) *randfill.Filler {
	return from.NilChance(0.3).NumElements(1, 3).MaxDepth(20).Funcs(
		func(*metav1.TypeMeta, randfill.Continue) {}, // who asks for a version names it
		func(t *corev1.PodTemplateSpec, c randfill.Continue) { t.Spec.NodeName = c.String(8) },
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31n(9)) },
		func(s *v1beta1.DaemonSetSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			if s.ScaleStrategy != nil && !s.ScaleStrategy.PartitionedScaling {
				s.ScaleStrategy = nil // an empty one says nothing
			}
		},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			if text := []string{"", "true", "false", "yes"}[c.Intn(4)]; text != "" {
				m.Annotations = with(m.Annotations, keys.ProgressiveCreatePod, text)
			}
		},
	)
}

func TestDaemonSetsSurviveTheOlderVersion(t *testing.T) { fromSeeds(t, daemonSetSurvives) }

func daemonSetSurvives(t *testing.T, from *randfill.Filler) {
	t.Helper()
	var want, got v1beta1.DaemonSet
	var middle v1alpha1.DaemonSet
	daemonSetFiller(from).Fill(&want)
	before := want.DeepCopy()
	DaemonSetFromHub(&want, &middle)
	if diff := cmp.Diff(before, &want); diff != "" {
		t.Errorf("converting changed its source (-before +after):\n%s", diff)
	}
	DaemonSetToHub(&middle, &got)
	if want.Annotations[keys.ProgressiveCreatePod] == "true" {
		want.Annotations = without(want.Annotations, keys.ProgressiveCreatePod) // it says nothing in the hub version
	}
	if got.Annotations[keys.ProgressiveCreatePod] == "true" {
		t.Errorf("the annotation is in the hub version")
	}
	if want.Spec.ScaleStrategy != nil {
		// Writing the field over an annotation that says otherwise replaces it.
		want.Annotations = without(want.Annotations, keys.ProgressiveCreatePod)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOlderDaemonSetsComeBackFromStorageAsTheyWere(t *testing.T) {
	fromSeeds(t, olderDaemonSetComesBack)
}

func olderDaemonSetComesBack(t *testing.T, from *randfill.Filler) {
	t.Helper()
	comesBack(t, daemonSetFiller(from), DaemonSetToHub, DaemonSetFromHub)
}

func FuzzDaemonSetRoundTrips(f *testing.F) { fromBytes(f, daemonSetSurvives, olderDaemonSetComesBack) }

func TestSurgingIsStoredAsStandard(t *testing.T) {
	one, two, none := intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromInt32(0)
	for name, tc := range map[string]struct {
		in, want struct{ unavailable, surge *intstr.IntOrString }
	}{
		"without numbers a node may surge": {want: struct{ unavailable, surge *intstr.IntOrString }{nil, &one}},
		"numbers are kept": {
			in:   struct{ unavailable, surge *intstr.IntOrString }{&none, &two},
			want: struct{ unavailable, surge *intstr.IntOrString }{&none, &two},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out v1beta1.DaemonSet
			DaemonSetToHub(&v1alpha1.DaemonSet{Spec: v1alpha1.DaemonSetSpec{UpdateStrategy: v1alpha1.DaemonSetUpdateStrategy{
				RollingUpdate: &v1alpha1.RollingUpdateDaemonSet{
					Type: v1alpha1.DeprecatedSurgingRollingUpdateType, RollingUpdateDaemonSetBase: v1beta1.RollingUpdateDaemonSetBase{
						MaxUnavailable: tc.in.unavailable, MaxSurge: tc.in.surge,
					},
				},
			}}}, &out)
			want := &v1beta1.RollingUpdateDaemonSet{
				Type: v1beta1.StandardRollingUpdateType, RollingUpdateDaemonSetBase: v1beta1.RollingUpdateDaemonSetBase{
					MaxUnavailable: tc.want.unavailable, MaxSurge: tc.want.surge,
				},
			}
			if diff := cmp.Diff(want, out.Spec.UpdateStrategy.RollingUpdate); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTurningPartitionedScalingOffStays writes through both versions in turn: an annotation left behind turned the field on again.
func TestTurningPartitionedScalingOffStays(t *testing.T) {
	stored := v1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{keys.ProgressiveCreatePod: "true"}},
		Spec:       v1beta1.DaemonSetSpec{ScaleStrategy: &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: false}},
	}
	var older v1alpha1.DaemonSet
	DaemonSetFromHub(&stored, &older)
	var again v1beta1.DaemonSet
	DaemonSetToHub(&older, &again)
	if again.Spec.ScaleStrategy != nil {
		t.Errorf("scaleStrategy is %+v, want none", again.Spec.ScaleStrategy)
	}
}

// TestRecordedDaemonSets takes objects of a cluster of the original to the older version and back: only the version may change, and the
// spelling of the revision in the status.
func TestRecordedDaemonSets(t *testing.T) {
	data, err := os.ReadFile("testdata/daemonsets.json")
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	if err := json.Unmarshal(data, &objects); err != nil || len(objects) != 2 {
		t.Fatalf("read %d objects, want 2: %v", len(objects), err)
	}
	for _, object := range objects {
		want := parse(t, object)
		older, err := Object(want, spokeVersion)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Object["spec"], older.Object["spec"]); diff != "" {
			t.Errorf("spec in the older version (-want +got):\n%s", diff)
		}
		hash, _, _ := unstructured.NestedString(want.Object, "status", "updateRevision")
		if got, _, _ := unstructured.NestedString(older.Object, "status", "daemonSetHash"); got != hash || hash == "" {
			t.Errorf("daemonSetHash is %q, want %q", got, hash)
		}
		back, err := Object(older, hubVersion)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
