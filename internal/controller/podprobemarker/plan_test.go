package podprobemarker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

func marker(name string, age time.Duration) *v1alpha1.PodProbeMarker {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Generation: 3, Finalizers: []string{keys.ProbeCleanup},
		CreationTimestamp: metav1.NewTime(noon.Add(-age)),
	}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "p"}}
	m.Spec.Probes = []v1alpha1.PodContainerProbe{{Name: "a", ContainerName: "main", PodConditionType: "idle"}}
	return m
}

func TestPlan(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"app": "p"}}}
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	deleted := func(v *Snapshot) { v.Marker.DeletionTimestamp = &metav1.Time{} }
	const clash = "probe a is not run on Pods that PodProbeMarker old selects as well: both write condition idle"
	cases := map[string]struct {
		change []func(*Snapshot)
		writes int
		holds  []string
	}{
		"all is as it should be": {nil, 0, nil},
		"a new one is held":      {[]func(*Snapshot){func(v *Snapshot) { v.Marker.Finalizers = nil }}, 1, nil},
		"deleted, and still asked for": {
			[]func(*Snapshot){deleted, func(v *Snapshot) { v.Nodes = 2 }}, 0, []string{"2 nodes still ask for it"},
		},
		"deleted, and asked for no more": {[]func(*Snapshot){deleted}, 1, nil},
		"deleted, and held by others only": {
			[]func(*Snapshot){deleted, func(v *Snapshot) { v.Marker.Finalizers = []string{"other"} }}, 0, nil,
		},
		"an older one has the condition": {
			[]func(*Snapshot){func(v *Snapshot) { v.Beside = append(v.Beside, marker("old", time.Hour)) }}, 0, []string{clash},
		},
		"a younger one wants it, too": {
			[]func(*Snapshot){func(v *Snapshot) { v.Beside = append(v.Beside, marker("young", 0)) }}, 0, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := marker("m", time.Minute)
			v := Snapshot{Marker: m, Beside: []*v1alpha1.PodProbeMarker{m}, Pods: []*corev1.Pod{p, p.DeepCopy()}}
			for _, change := range tc.change {
				change(&v)
			}
			decided := Plan(v)
			var holds []string
			for _, h := range decided.Holds {
				holds = append(holds, h.Why)
			}
			if diff := cmp.Diff(tc.holds, holds); diff != "" || len(decided.Actions()) != tc.writes {
				t.Errorf("%d writes, want %d; holds (-want +got):\n%s", len(decided.Actions()), tc.writes, diff)
			}
		})
	}
}

func TestStatusCounts(t *testing.T) {
	m := marker("m", 0)
	want := v1alpha1.PodProbeMarkerStatus{ObservedGeneration: 3, MatchedPods: 2}
	if diff := cmp.Diff(want, Status(Snapshot{Marker: m, Pods: make([]*corev1.Pod, 2)}, plan.Plan{}, apply.Outcome{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
