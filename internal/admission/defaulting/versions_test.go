package defaulting

import (
	"context"
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// create returns an object of v1alpha1 with the defaults that the webhook gives to a new one.
func create[T any](t *testing.T, h admission.Handler, kind string, object T) T {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	response := (&webhook.Admission{Handler: h}).Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: kind},
		Object: runtime.RawExtension{Raw: raw},
	}})
	if !response.Allowed {
		t.Fatalf("answered %v", response.Result)
	}
	if len(response.Patches) > 0 {
		patch, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatalf("applying %s: %v", response.Patch, err)
		}
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDefaultsAreTheSameInBothVersions: it makes no difference for what is stored in which version an object was written.
func TestDefaultsAreTheSameInBothVersions(t *testing.T) {
	for seed := range int64(500) {
		fill := randfill.New().RandSource(rand.NewSource(seed)).NilChance(0.5).NumElements(1, 2).MaxDepth(20).Funcs(
			func(q *resource.Quantity, c randfill.Continue) {
				*q = *resource.NewScaledQuantity(int64(c.Intn(5000)), resource.Scale(-6+3*c.Intn(4)))
			},
			func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawBytes([]byte(`{}`)) },
			func(m *metav1.TypeMeta, _ randfill.Continue) {
				*m = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CloneSet"}
			},
			func(m *metav1.Time, c randfill.Continue) { *m = metav1.Unix(int64(c.Intn(1e9)), 0) },
			func(m *metav1.MicroTime, c randfill.Continue) {
				*m = metav1.MicroTime(metav1.Unix(int64(c.Intn(1e9)), 0))
			},
			func(s *v1alpha1.CloneSetUpdateStrategy, c randfill.Continue) {
				c.FillNoCustom(s)
				s.Type = []v1alpha1.CloneSetUpdateStrategyType{"", "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"}[c.Intn(5)]
			},
		)
		var older v1alpha1.CloneSet
		fill.Fill(&older)
		older.DeletionTimestamp, older.Status = nil, v1beta1.CloneSetStatus{}

		var want, got v1beta1.CloneSet
		convert.CloneSetToHub(&older, &want)
		defaults.CloneSet(&want, nil, defaults.Options{HostNetworkHostPorts: true})
		defaulted := create(t, CloneSet(defaults.Options{HostNetworkHostPorts: true}), "CloneSet", older)
		convert.CloneSetToHub(&defaulted, &got)
		if diff := cmp.Diff(normal(t, want.Spec), normal(t, got.Spec)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		if diff := cmp.Diff(normal(t, older.ObjectMeta), normal(t, defaulted.ObjectMeta)); diff != "" {
			t.Fatalf("metadata, seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// normal returns value as it looks in JSON.
func normal(t *testing.T, value any) any {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

func TestDaemonSetsOfTheOlderVersion(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nothing said":             {"{}", "{type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxUnavailable: 1, maxSurge: 0}}"},
		"surge alone":              {"{rollingUpdate: {maxSurge: 2}}", "{type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxSurge: 2}}"},
		"OnDelete":                 {"{type: OnDelete}", "{type: OnDelete}"},
		"Surging is one node":      {"{rollingUpdate: {rollingUpdateType: Surging}}", "{type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxUnavailable: 0, maxSurge: 1}}"},
		"Surging of several nodes": {"{rollingUpdate: {rollingUpdateType: Surging, maxSurge: 3}}", "{type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxUnavailable: 0, maxSurge: 3}}"},
	} {
		t.Run(name, func(t *testing.T) {
			older := v1alpha1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "DaemonSet"}}
			var want v1beta1.DaemonSetUpdateStrategy
			if err := yaml.Unmarshal([]byte(tc.in), &older.Spec.UpdateStrategy); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			older = create(t, DaemonSet(), "DaemonSet", older)
			var stored v1beta1.DaemonSet
			convert.DaemonSetToHub(&older, &stored)
			if diff := cmp.Diff(want, stored.Spec.UpdateStrategy); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnImageListInTheOlderVersion is an annotation, by which its jobs replace each other.
func TestAnImageListInTheOlderVersion(t *testing.T) {
	older := v1alpha1.AdvancedCronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AdvancedCronJob"},
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"apps.kruise.io/image-list-pull-job-template": "{}"}},
	}
	if got := create(t, AdvancedCronJob(defaults.Options{}), "AdvancedCronJob", older); got.Spec.ConcurrencyPolicy != "Replace" {
		t.Errorf("the policy is %q, want Replace", got.Spec.ConcurrencyPolicy)
	}
}

// TestSidecarSetsOfTheOlderVersion have the same hash as in the hub version, or each write in the other version would make all Pods outdated. What the
// first releases spell otherwise comes to what has taken its place.
func TestSidecarSetsOfTheOlderVersion(t *testing.T) {
	no, limit := false, intstr.FromInt32(2)
	older := v1alpha1.SidecarSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "SidecarSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "log"},
		Spec:       v1alpha1.SidecarSetSpec{Namespace: "ns", Paused: &no},
	}
	older.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: "log:1"}}}
	older.Spec.Strategy = &v1alpha1.SidecarSetDeprecatedStrategy{RollingUpdate: &v1alpha1.SidecarSetDeprecatedRollingUpdate{MaxUnavailable: &limit}}

	var want, got v1beta1.SidecarSet
	convert.SidecarSetToHub(&older, &want)
	want.Spec.UpdateStrategy.MaxUnavailable = &limit
	if err := defaults.SidecarSet(&want); err != nil {
		t.Fatal(err)
	}
	defaulted := create(t, SidecarSet(), "SidecarSet", older)
	convert.SidecarSetToHub(&defaulted, &got)
	if diff := cmp.Diff(normal(t, want), normal(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
