package convert

import (
	"encoding/json"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func recreateRules() []any {
	return []any{
		func(*metav1.TypeMeta, randfill.Continue) {},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			m.ManagedFields = nil
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.NewTime(time.Unix(c.Int63n(1<<31), 0).UTC()) },
		func(h *corev1.LifecycleHandler, c randfill.Continue) {
			h.Exec = &corev1.ExecAction{Command: []string{c.String(8)}}
		},
		func(s *[]metav1.Condition, c randfill.Continue) {
			types := []string{"PreRecreateGrace", "Succeeded"}
			for _, t := range types[:c.Intn(3)] {
				condition := metav1.Condition{Type: t, Status: "True", Reason: c.String(5), Message: c.String(9)}
				c.Fill(&condition.LastTransitionTime)
				*s = append(*s, condition)
			}
		},
	}
}

func fillRecreate(seed int64) *randfill.Filler {
	return randfill.New().RandSource(rand.NewSource(seed)).NilChance(0.3).NumElements(1, 3).MaxDepth(20).Funcs(recreateRules()...)
}

// through returns an object after a journey through other versions of its kind, as the API server would take it.
func through[T any](t *testing.T, object *T, apiVersions ...string) *T {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	own := u.GetAPIVersion()
	for _, version := range append(apiVersions, own) {
		if u, err = Object(u, version); err != nil {
			t.Fatal(err)
		}
	}
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func sameJSON(t *testing.T, want, got any) {
	t.Helper()
	var texts [2]map[string]any
	for i, object := range []any{want, got} {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

func checkRecreateRequests(t *testing.T, fill func(any)) {
	t.Helper()
	var hub v1beta1.ContainerRecreateRequest
	fill(&hub)
	hub.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ContainerRecreateRequest"}
	sameJSON(t, &hub, through(t, &hub, v1alpha1.GroupVersion.String()))

	var spoke v1alpha1.ContainerRecreateRequest
	fill(&spoke)
	spoke.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ContainerRecreateRequest"}
	// Its annotation says what its condition does.
	spoke = *through(t, &spoke, v1beta1.GroupVersion.String())
	sameJSON(t, &spoke, through(t, &spoke, v1beta1.GroupVersion.String()))
}

func TestRecreateRequestsSurviveTheOtherVersion(t *testing.T) {
	for seed := range int64(seeds) {
		checkRecreateRequests(t, func(object any) { fillRecreate(seed).Fill(object) })
	}
}

func FuzzRecreateRequests(f *testing.F) {
	f.Add([]byte("a request of any kind"))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkRecreateRequests(t, func(object any) {
			randfill.NewFromGoFuzz(data).Funcs(recreateRules()...).NilChance(0.3).NumElements(1, 3).MaxDepth(20).Fill(object)
		})
	})
}

func TestRecreateRequestsTellTheSameInBothVersions(t *testing.T) {
	text := `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"ContainerRecreateRequest","metadata":{"name":"r","annotations":{"mine":"kept",` +
		`"crr.apps.kruise.io/unready-acquired":"2024-05-06T07:08:09Z",` +
		`"crr.apps.kruise.io/sync-container-statuses":"[{\"name\":\"app\",\"ready\":true,\"restartCount\":1,\"containerID\":\"containerd://b\"}]"}},` +
		`"spec":{"podName":"p","containers":[{"name":"app"}]}}`
	older := &unstructured.Unstructured{}
	if err := older.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	hub, err := Object(older, v1beta1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"mine": "kept"}, hub.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	want := map[string]any{
		"conditions": []any{map[string]any{
			"type": "PreRecreateGrace", "status": "True", "reason": "PreRecreateGrace", "lastTransitionTime": "2024-05-06T07:08:09Z",
			"message": "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
		}},
		"containerStatusSnapshot": []any{map[string]any{"name": "app", "ready": true, "restartCount": int64(1), "containerID": "containerd://b"}},
	}
	if diff := cmp.Diff(want, hub.Object["status"]); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	back, err := Object(hub, v1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(older.GetAnnotations(), back.GetAnnotations()); diff != "" {
		t.Errorf("annotations on the way back (-want +got):\n%s", diff)
	}
}

func TestRecreateRequestsDropWhatCannotBeRead(t *testing.T) {
	older := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ContainerRecreateRequest",
		"metadata": map[string]any{"annotations": map[string]any{keys.RecreateUnreadyAcquired: "yesterday", keys.RecreateSyncContainerStatuses: "{"}},
	}}
	hub, err := Object(older, v1beta1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	if hub.GetAnnotations() != nil || hub.Object["status"] != nil {
		t.Errorf("it says %v", hub.Object)
	}
}
