package defaults

import (
	"encoding/json"
	"math/rand"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/convert"
)

// TestDefaultsOfTheOriginal fills in what users applied to a cluster of the original and compares with what was stored there.
func TestDefaultsOfTheOriginal(t *testing.T) {
	data, err := os.ReadFile("../convert/testdata/clonesets.json")
	if err != nil {
		t.Fatal(err)
	}
	var objects []json.RawMessage
	if err := json.Unmarshal(data, &objects); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, raw := range objects {
		var header metav1.PartialObjectMetadata
		decode(t, raw, &header)
		applied := header.Annotations[corev1.LastAppliedConfigAnnotation]
		var appliedHeader metav1.TypeMeta
		decode(t, []byte(applied), &appliedHeader)
		if header.Generation != 1 || header.APIVersion != appliedHeader.APIVersion {
			continue // changed since by other means, or applied in the other version
		}
		compared++
		t.Run(header.APIVersion+" "+header.Name, func(t *testing.T) {
			if header.APIVersion == v1alpha1.GroupVersion.String() {
				var want, got v1alpha1.CloneSet
				decode(t, raw, &want)
				decode(t, []byte(applied), &got)
				same(t, want.Spec, defaultedInHub(&got).Spec)
				return
			}
			var want, got v1beta1.CloneSet
			decode(t, raw, &want)
			decode(t, []byte(applied), &got)
			CloneSet(&got, nil, Options{})
			same(t, want.Spec, got.Spec)
		})
	}
	if compared != 6 {
		t.Errorf("compared %d recorded objects, want 6", compared)
	}
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCloneSet(t *testing.T) {
	one, ten, zero, fifth := int32(1), int32(10), intstr.FromInt32(0), intstr.FromString("20%")
	rolling := func(policy v1beta1.CloneSetPodUpdatePolicyType, details *v1beta1.InPlaceUpdateStrategy) v1beta1.CloneSetUpdateStrategy {
		return v1beta1.CloneSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
			PodUpdatePolicy: policy, Partition: &zero, MaxUnavailable: &fifth, MaxSurge: &zero, InPlaceUpdateStrategy: details,
		}}
	}
	onDelete := v1beta1.CloneSetUpdateStrategy{Type: "OnDelete"}
	onDeleteWithEmptyStages := v1beta1.CloneSetUpdateStrategy{Type: "OnDelete", RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{}}
	for name, tc := range map[string]struct {
		in, want v1beta1.CloneSetUpdateStrategy
	}{
		"nothing said means recreating in stages": {want: rolling("ReCreate", nil)},
		"an in-place policy gets its details": {
			in:   v1beta1.CloneSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: "InPlaceOnly"}},
			want: rolling("InPlaceOnly", &v1beta1.InPlaceUpdateStrategy{}),
		},
		"nothing is added that OnDelete would not use": {in: onDelete, want: onDelete},
		"nor where its stages are empty":               {in: onDeleteWithEmptyStages, want: onDeleteWithEmptyStages},
	} {
		t.Run(name, func(t *testing.T) {
			set := v1beta1.CloneSet{Spec: v1beta1.CloneSetSpec{UpdateStrategy: tc.in}}
			CloneSet(&set, nil, Options{TemplateNoDefaults: true})
			same(t, v1beta1.CloneSetSpec{CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{Replicas: &one, RevisionHistoryLimit: &ten}, UpdateStrategy: tc.want}, set.Spec)
		})
	}
}

func TestTemplatesAreDefaultedOnlyWhenTheyChange(t *testing.T) {
	bare := func(image string) *v1beta1.CloneSet {
		set := &v1beta1.CloneSet{}
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: image}}}
		return set
	}
	for name, tc := range map[string]struct {
		old  *v1beta1.CloneSet
		o    Options
		want corev1.PullPolicy
	}{
		"a new object":                     {want: corev1.PullAlways},
		"a changed template":               {old: bare("nginx:1"), want: corev1.PullAlways},
		"a template stored without":        {old: bare("nginx:2"), want: ""},
		"a new object, but none wanted":    {o: Options{TemplateNoDefaults: true}, want: ""},
		"a changed template, none wanted":  {old: bare("nginx:1"), o: Options{TemplateNoDefaults: true}, want: ""},
		"a template that has lost its own": {old: defaulted(bare("nginx:2")), want: corev1.PullAlways},
	} {
		t.Run(name, func(t *testing.T) {
			set := bare("nginx:2")
			CloneSet(set, tc.old, tc.o)
			if got := set.Spec.Template.Spec.Containers[0].ImagePullPolicy; got != tc.want {
				t.Errorf("imagePullPolicy is %q, want %q", got, tc.want)
			}
			wantPhase := corev1.ClaimPending
			if tc.want == "" {
				wantPhase = ""
			}
			if got := set.Spec.VolumeClaimTemplates[0].Status.Phase; got != wantPhase {
				t.Errorf("phase of the claim template is %q, want %q", got, wantPhase)
			}
		})
	}
}

func defaulted(set *v1beta1.CloneSet) *v1beta1.CloneSet {
	CloneSet(set, nil, Options{})
	return set
}

// defaultedInHub fills in the defaults of an object of the older version as its webhook does: in the hub version.
func defaultedInHub(set *v1alpha1.CloneSet) *v1alpha1.CloneSet {
	var hub v1beta1.CloneSet
	var out v1alpha1.CloneSet
	convert.CloneSetToHub(set, &hub)
	CloneSet(&hub, nil, Options{})
	convert.CloneSetFromHub(&hub, &out)
	return &out
}

func TestDefaultsSettleAtOnce(t *testing.T) {
	for seed := range int64(1000) {
		fill := randfill.New().RandSource(rand.NewSource(seed)).NilChance(0.5).NumElements(1, 2).MaxDepth(20).Funcs(
			func(q *resource.Quantity, c randfill.Continue) {
				*q = *resource.NewScaledQuantity(int64(c.Intn(5000)), resource.Scale(-6+3*c.Intn(4)))
			},
			func(s *v1beta1.CloneSetUpdateStrategyType, c randfill.Continue) {
				*s = []v1beta1.CloneSetUpdateStrategyType{"", "RollingUpdate", "OnDelete"}[c.Intn(3)]
			},
			func(s *v1beta1.CloneSetPodUpdatePolicyType, c randfill.Continue) {
				*s = []v1beta1.CloneSetPodUpdatePolicyType{"", "ReCreate", "InPlaceIfPossible", "InPlaceOnly"}[c.Intn(4)]
			},
		)
		var set v1beta1.CloneSet
		fill.Fill(&set)
		CloneSet(&set, nil, Options{HostNetworkHostPorts: true})
		again := *set.DeepCopy()
		CloneSet(&again, nil, Options{HostNetworkHostPorts: true})
		same(t, set, again)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
