package convert

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// sidecarSetFiller fills what can be stored, and the label and the selectors that conversion looks at more often than chance would.
func sidecarSetFiller(from *randfill.Filler) *randfill.Filler {
	return from.NilChance(0.3).NumElements(1, 3).MaxDepth(20).Funcs(
		func(*metav1.TypeMeta, randfill.Continue) {}, // who asks for a version names it
		func(container *corev1.Container, c randfill.Continue) { container.Name = c.String(8) },
		func(volume *corev1.Volume, c randfill.Continue) { volume.Name = c.String(8) },
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31n(9)) },
		func(s *metav1.LabelSelector, c randfill.Continue) {
			switch c.Intn(4) {
			case 0:
				s.MatchLabels = map[string]string{corev1.LabelMetadataName: "ns"}
			case 1:
				s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: "In", Values: []string{"ns"}}}
			default:
				c.FillNoCustom(s)
			}
		},
		func(s *v1alpha1.SidecarSetSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Namespace = []string{"", "ns", "other"}[c.Intn(3)]
		},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			if c.Bool() {
				m.Labels = with(m.Labels, keys.SidecarSetCustomVersion, []string{"", "v1"}[c.Intn(2)])
			}
		},
	)
}

func TestSidecarSetsSurviveTheOlderVersion(t *testing.T) { fromSeeds(t, sidecarSetSurvives) }

func sidecarSetSurvives(t *testing.T, from *randfill.Filler) {
	t.Helper()
	comesBack(t, sidecarSetFiller(from), SidecarSetFromHub, SidecarSetToHub)
}

func TestOlderSidecarSetsComeBackFromStorageAsTheyWere(t *testing.T) {
	fromSeeds(t, olderSidecarSetComesBack)
}

func olderSidecarSetComesBack(t *testing.T, from *randfill.Filler) {
	t.Helper()
	comesBack(t, sidecarSetFiller(from), SidecarSetToHub, SidecarSetFromHub)
}

func FuzzSidecarSetRoundTrips(f *testing.F) {
	fromBytes(f, sidecarSetSurvives, olderSidecarSetComesBack)
}

func TestNamespacesAreStoredAsSelectors(t *testing.T) {
	byName := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "ns"}}
	both := &metav1.LabelSelector{
		MatchLabels:      map[string]string{"team": "a"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubernetes.io/metadata.name", Operator: "In", Values: []string{"ns"}}},
	}
	for name, tc := range map[string]struct{ in, want *metav1.LabelSelector }{
		"a namespace alone":                     {nil, byName},
		"a namespace and a selector apply both": {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, both},
	} {
		t.Run(name, func(t *testing.T) {
			var out v1beta1.SidecarSet
			SidecarSetToHub(&v1alpha1.SidecarSet{Spec: v1alpha1.SidecarSetSpec{Namespace: "ns", SidecarSetBaseSpec: v1beta1.SidecarSetBaseSpec{NamespaceSelector: tc.in}}}, &out)
			if diff := cmp.Diff(tc.want, out.Spec.NamespaceSelector); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAChangedSelectorWins writes in the newer version what was stored for the older one: the namespace must not come back.
func TestAChangedSelectorWins(t *testing.T) {
	var stored v1beta1.SidecarSet
	SidecarSetToHub(&v1alpha1.SidecarSet{Spec: v1alpha1.SidecarSetSpec{Namespace: "ns"}}, &stored)
	want := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "other"}}
	stored.Spec.NamespaceSelector = want
	var older v1alpha1.SidecarSet
	SidecarSetFromHub(&stored, &older)
	if diff := cmp.Diff(want, older.Spec.NamespaceSelector); diff != "" || older.Spec.Namespace != "" {
		t.Errorf("namespace %q, selector (-want +got):\n%s", older.Spec.Namespace, diff)
	}
}

func TestTheCustomVersionIsALabelInTheOlderVersion(t *testing.T) {
	var stored v1beta1.SidecarSet
	SidecarSetToHub(&v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{keys.SidecarSetCustomVersion: "v1"}}}, &stored)
	if stored.Spec.CustomVersion != "v1" || len(stored.Labels) != 0 {
		t.Errorf("customVersion is %q, labels %v; want v1 and none", stored.Spec.CustomVersion, stored.Labels)
	}
}

// TestRecordedSidecarSets takes objects of a cluster of the original to the older version and back: only the version may change.
func TestRecordedSidecarSets(t *testing.T) {
	data, err := os.ReadFile("testdata/sidecarsets.json")
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
		back, err := Object(older, hubVersion)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
