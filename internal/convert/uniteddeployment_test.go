package convert

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestUnitedDeploymentRoundTripsLoseNothing(t *testing.T) {
	fromSeeds(t, unitedDeploymentRoundTrip)
}

func FuzzUnitedDeploymentRoundTrips(f *testing.F) { fromBytes(f, unitedDeploymentRoundTrip) }

func unitedDeploymentRoundTrip(t *testing.T, from *randfill.Filler) {
	t.Helper()
	var filled v1beta1.UnitedDeployment
	jobFiller(from).Funcs(
		func(*appsv1.DeploymentSpec, randfill.Continue) {}, // it travels with spec, which no version changes
		func(*appsv1.StatefulSetSpec, randfill.Continue) {},
		func(*v1beta1.CloneSetSpec, randfill.Continue) {},
		func(*v1beta1.StatefulSetSpec, randfill.Continue) {},
		func(term *corev1.NodeSelectorTerm, c randfill.Continue) {
			term.MatchExpressions = []corev1.NodeSelectorRequirement{{Key: c.String(3)}}
		},
		func(patch *runtime.RawExtension, c randfill.Continue) {
			if c.Bool() {
				patch.Raw = []byte(fmt.Sprintf(`{"spec":{"n":%d}}`, c.Intn(9)))
			}
		},
	).Fill(&filled)
	for i := range filled.Status.SubsetStatuses {
		filled.Status.SubsetStatuses[i].Name = fmt.Sprint("subset-", i)
	}
	older := survives(t, "UnitedDeployment", &filled)
	replicas, _, _ := unstructured.NestedMap(older.Object, "status", "subsetReplicas")
	if len(replicas) != len(filled.Status.SubsetStatuses) {
		t.Errorf("%d numbers of %d subsets", len(replicas), len(filled.Status.SubsetStatuses))
	}
}

func TestStatusOfUnitedDeploymentsInBothVersions(t *testing.T) {
	for name, tc := range map[string]struct{ older, newer string }{
		"nothing": {"{}", "{}"},
		"a rollout": {
			`{updateStatus: {updatedRevision: r, currentPartitions: {a: 1, b: 0}}, subsetReplicas: {a: 2, b: 0}, replicas: 2,
			subsetStatuses: [{name: a, replicas: 2, partition: 1, readyReplicas: 1}, {name: b, kept: yes}]}`,
			"{updatedRevision: r, replicas: 2, subsetStatuses: [{name: a, replicas: 2, partition: 1, readyReplicas: 1}, {name: b, kept: yes}]}",
		},
		"no subsets": {"{updateStatus: {updatedRevision: r}, replicas: 0}", "{updatedRevision: r, replicas: 0}"},
	} {
		t.Run(name, func(t *testing.T) {
			older, newer := statusIn(t, "v1alpha1", tc.older), statusIn(t, "v1beta1", tc.newer)
			for _, step := range []struct{ from, want *unstructured.Unstructured }{{older, newer}, {newer, older}} {
				got, err := Object(step.from, step.want.GetAPIVersion())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("to %s (-want +got):\n%s", step.want.GetAPIVersion(), diff)
				}
			}
		})
	}
}

// TestSubsetsThatOnlyTheMapsKnow: an installation of the original may have written no entries.
func TestSubsetsThatOnlyTheMapsKnow(t *testing.T) {
	older := statusIn(t, "v1alpha1", "{updateStatus: {currentPartitions: {b: 3}}, subsetReplicas: {b: 4, a: 2}}")
	got, err := Object(older, hubVersion)
	if err != nil {
		t.Fatal(err)
	}
	want := statusIn(t, "v1beta1", "{subsetStatuses: [{name: a, replicas: 2}, {name: b, replicas: 4, partition: 3}]}")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func statusIn(t *testing.T, version, status string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("metadata: {name: x}\nspec: {replicas: 1}\nstatus: "+status), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.Object = whole(o.Object).(map[string]any)
	o.SetAPIVersion("apps.kruise.io/" + version)
	o.SetKind("UnitedDeployment")
	return o
}

// whole turns numbers into those that decoded JSON of the API has.
func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			value[key] = whole(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = whole(inner)
		}
	case float64:
		return int64(value)
	}
	return value
}
