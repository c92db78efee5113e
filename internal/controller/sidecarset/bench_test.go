package sidecarset

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
)

// BenchmarkPass is one pass over 20,000 Pods in the middle of the rollout of an image.
func BenchmarkPass(b *testing.B) {
	const pods = 20_000
	s := snapshotOf(b, pods, func(pod int) bool { return pod%2 == 1 })
	b.ResetTimer()
	for range b.N {
		v := Classify(s)
		if v.problem != nil || len(Plan(v).Stages) == 0 || len(v.matched) != pods {
			b.Fatalf("%d Pods are matched: %v", len(v.matched), v.problem)
		}
	}
}

// snapshotOf returns a SidecarSet whose image has changed, and Pods in service that have the new one or the one before.
func snapshotOf(t testing.TB, pods int, isUpdated func(pod int) bool) Snapshot {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: "log:1"}}}
	most := intstr.FromString("1%")
	set.Spec.UpdateStrategy.MaxUnavailable = &most
	if err := defaults.SidecarSet(set); err != nil {
		t.Fatal(err)
	}
	s := Snapshot{Set: set.DeepCopy(), Now: now}
	s.Set.Spec.Containers[0].Image = "log:2"
	var revisions [2]*inject.Sidecars
	for i, injected := range []*v1beta1.SidecarSet{set, s.Set} {
		var err error
		if revisions[i], err = inject.Compile(injected); err != nil {
			t.Fatal(err)
		}
	}
	for i := range pods {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Namespace: "default", Labels: map[string]string{"app": "web"}}}
		p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
		p.Spec.NodeName = "node"
		injected := revisions[:1]
		if isUpdated(i) {
			injected = revisions[1:]
		}
		if _, err := inject.Into(p, injected, inject.Options{Now: now}); err != nil {
			t.Fatal(err)
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		for _, c := range p.Spec.Containers {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true})
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}
