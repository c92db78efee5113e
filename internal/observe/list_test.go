package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestFindAndList(t *testing.T) {
	named := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	r := fake.NewClientBuilder().WithObjects(named("a", "x"), named("a", "y"), named("b", "z")).Build()
	if p, err := Find(t.Context(), r, types.NamespacedName{Namespace: "a", Name: "x"}, &corev1.Pod{}); err != nil || p == nil ||
		p.Name != "x" {
		t.Errorf("x: found %v, %v", p, err)
	}
	if p, err := Find(t.Context(), r, types.NamespacedName{Namespace: "b", Name: "x"}, &corev1.Pod{}); err != nil || p != nil {
		t.Errorf("no such Pod: found %v, %v", p, err)
	}
	var list corev1.PodList
	pods, err := List(t.Context(), r, &list, &list.Items, client.InNamespace("a"))
	if err != nil {
		t.Fatal(err)
	}
	got := Keys(pods, func(p *corev1.Pod) bool { return p.Name == "y" })
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "a", Name: "y"}}, got); len(pods) != 2 || diff != "" {
		t.Errorf("%d Pods listed, want 2; keys (-want +got):\n%s", len(pods), diff)
	}
}
