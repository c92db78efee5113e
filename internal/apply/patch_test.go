package apply

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

func untyped(text string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return out
}

func TestDiff(t *testing.T) {
	pod := func(changes ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"app": "web"}, Finalizers: []string{"x/kept", "x/gone"},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}, {Name: "side", Image: "side:v1"}}},
		}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	cases := map[string]struct {
		before, after plan.Object
		part          part
		condition     precondition
		want          string
	}{
		"nothing to write is no patch": {
			before: pod(), after: pod(), part: main,
		},
		"what the server alone writes is no difference": {
			before: pod(),
			after: pod(func(p *corev1.Pod) {
				p.ResourceVersion, p.Generation, p.ManagedFields = "9", 3, []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
			}),
			part: main,
		},
		"a status is no part of the main write": {
			before: pod(), after: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), part: main,
		},
		"containers are merged by name": {
			before: pod(), after: pod(func(p *corev1.Pod) { p.Spec.Containers[1].Image = "side:v2" }), part: main,
			condition: precondition{uid: "u", resourceVersion: "7"},
			want: `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"$setElementOrder/containers":[{"name":"app"},{"name":"side"}],` +
				`"containers":[{"image":"side:v2","name":"side"}]}}`,
		},
		"labels ride on a status, a spec does not": {
			before: pod(),
			after: pod(func(p *corev1.Pod) {
				p.Labels["app"], p.Status.Phase = "stray", corev1.PodRunning
				p.Spec.Containers[0].Image = "app:v2"
			}),
			part: status, condition: precondition{uid: "u"},
			want: `{"metadata":{"labels":{"app":"stray"},"uid":"u"},"status":{"phase":"Running"}}`,
		},
		"an owner that lets go is taken out": {
			before: pod(func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "CloneSet", Name: "web", UID: "o"}}
			}),
			after: pod(), part: main, condition: precondition{uid: "u", resourceVersion: "7"},
			want: `{"metadata":{"ownerReferences":null,"resourceVersion":"7","uid":"u"}}`,
		},
		"of a resize only the resources are written": {
			before: pod(),
			after: pod(func(p *corev1.Pod) {
				p.Labels["app"] = "stray"
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			}),
			part: resize, condition: precondition{uid: "u"},
			want: `{"metadata":{"uid":"u"},"spec":{"$setElementOrder/containers":[{"name":"app"},{"name":"side"}],` +
				`"containers":[{"name":"app","resources":{"limits":{"cpu":"2"}}}]}}`,
		},
		"a custom resource has no lists that are merged": {
			before: &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: v1beta1.CloneSetSpec{
				ScaleStrategy: v1beta1.CloneSetScaleStrategy{PodsToDelete: []string{"a", "b"}},
			}},
			after: &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: v1beta1.CloneSetSpec{
				ScaleStrategy: v1beta1.CloneSetScaleStrategy{PodsToDelete: []string{"b"}},
			}},
			part: main, condition: precondition{uid: "u", resourceVersion: "7"},
			want: `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"scaleStrategy":{"podsToDelete":["b"]}}}`,
		},
		"of a kind that is not known as a type, what has changed is written": {
			before: untyped(`{"apiVersion":"x/v1","kind":"Route","metadata":{"uid":"u","resourceVersion":"7","annotations":{"kept":"a"}},
				"spec":{"rules":[{"weight":7}],"kept":1,"gone":true},"status":{"a":1}}`),
			after: untyped(`{"apiVersion":"x/v1","kind":"Route","metadata":{"uid":"u","resourceVersion":"7","annotations":{"kept":"a","new":"b"}},
				"spec":{"rules":[{"weight":8},{"weight":9}],"kept":1},"status":{"a":2}}`),
			part: main, condition: precondition{uid: "u", resourceVersion: "7"},
			want: `{"metadata":{"annotations":{"new":"b"},"resourceVersion":"7","uid":"u"},"spec":{"gone":null,"rules":[{"weight":8},{"weight":9}]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, patch, err := diff(tc.before, tc.after, tc.part, tc.condition)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPartIsWhatTheWholeIsEncodedAs compares the fields of a part, which are encoded one by one, with those of the whole object.
func TestAPartIsWhatTheWholeIsEncodedAs(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: "a", UID: "u", CreationTimestamp: now, Labels: map[string]string{"app": "<web>"}, Annotations: map[string]string{},
	}
	for name, object := range map[string]plan.Object{
		"nothing": &corev1.Pod{},
		"a Pod": &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta,
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}, NodeName: "node-1"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now},
		},
		"a revision":         &appsv1.ControllerRevision{ObjectMeta: meta, Revision: 3, Data: runtime.RawExtension{Raw: []byte(`{"spec": {}}`)}},
		"an empty ConfigMap": &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{}},
		"a ConfigMap":        &corev1.ConfigMap{Data: map[string]string{"key": "value"}, BinaryData: map[string][]byte{"key": {0, 1}}},
		"a custom resource":  &v1beta1.CloneSet{ObjectMeta: meta, Spec: v1beta1.CloneSetSpec{CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{MinReadySeconds: 3}}},
		"one without a spec": &v1beta1.ImagePullJob{},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal(encoded, &want); err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			for _, p := range []part{main, status} {
				part, err := partOf(object, p)
				if err != nil {
					t.Fatal(err)
				}
				fields, err := part.decode()
				if err != nil {
					t.Fatal(err)
				}
				maps.Copy(got, fields)
			}
			encoded, err = json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			if err := json.Unmarshal(encoded, &got); err != nil {
				t.Fatal(err)
			}
			if metadata, ok := want["metadata"].(map[string]any); !ok || len(metadata) == 0 {
				want["metadata"] = map[string]any{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
