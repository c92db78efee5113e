package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNew(t *testing.T) {
	owner := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	kind := appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	controlled := metav1.ObjectMeta{Namespace: "shop", GenerateName: "web-", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}}
	app := corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}}
	for name, tc := range map[string]struct {
		template corev1.PodTemplateSpec
		want     func(*corev1.Pod)
	}{
		"a template that says nothing of itself": {
			template: corev1.PodTemplateSpec{Spec: app},
			want:     func(p *corev1.Pod) { p.Labels = map[string]string{} },
		},
		"labels, annotations and finalizers are taken over, its name is not": {
			template: corev1.PodTemplateSpec{Spec: app, ObjectMeta: metav1.ObjectMeta{
				Name: "own", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"f"},
			}},
			want: func(p *corev1.Pod) {
				p.Labels, p.Annotations, p.Finalizers = map[string]string{"a": "b"}, map[string]string{"c": "d"}, []string{"f"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.template.DeepCopy()
			want := &corev1.Pod{ObjectMeta: *controlled.DeepCopy(), Spec: *app.DeepCopy()}
			tc.want(want)
			got := New(&tc.template, owner, kind)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			got.Labels["more"], got.Spec.Containers[0].Image = "x", "y"
			if diff := cmp.Diff(before, &tc.template); diff != "" {
				t.Errorf("changing the Pod changed the template (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAddReadinessGateAddsItOnce(t *testing.T) {
	p := &corev1.Pod{}
	for _, condition := range []corev1.PodConditionType{"a", "b", "a"} {
		AddReadinessGates(p, condition)
	}
	want := []corev1.PodReadinessGate{{ConditionType: "a"}, {ConditionType: "b"}}
	if diff := cmp.Diff(want, p.Spec.ReadinessGates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
