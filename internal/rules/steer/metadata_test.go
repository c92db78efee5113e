package steer

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestMetadataOfBatches: Pods get what their batch says, another batch or another plan replaces it, and in the end they have what they had.
func TestMetadataOfBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"", "1", "2"}), 0, 3)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: texts.Draw(t, "labels"), Annotations: texts.Draw(t, "annotations")}}
		before := p.DeepCopy()
		for range rapid.IntRange(0, 4).Draw(t, "batches") {
			want := &v1beta1.PodMetadata{Labels: texts.Draw(t, "labels of a batch"), Annotations: texts.Draw(t, "annotations of a batch")}
			given := p.DeepCopy()
			p = dressed(p, want)
			if again := dressed(p, want); !same(p, again) {
				t.Fatalf("what a Pod has is given to it again: %v", cmp.Diff(p, again))
			}
			labels, annotations := maps.Clone(before.Labels), maps.Clone(before.Annotations)
			maps.Copy(labels, want.Labels)
			maps.Copy(annotations, want.Annotations)
			got := maps.Clone(p.Annotations)
			delete(got, keys.BatchMetadata)
			if !maps.Equal(labels, p.Labels) || !maps.Equal(annotations, got) {
				t.Fatalf("of %v, %v has become %v, %v", given.ObjectMeta, want, p.Labels, p.Annotations)
			}
		}
		o := Objects{Pods: []*corev1.Pod{p}}
		for _, c := range Undressed(o) {
			p = c.After.(*corev1.Pod)
		}
		if diff := cmp.Diff(before, p); !same(before, p) {
			t.Fatalf("in the end (-before +after):\n%s", diff)
		}
	})
}

// TestBatchesGiveMetadata has the metadata come with the labels, follow the plan, and go at the end.
func TestBatchesGiveMetadata(t *testing.T) {
	o := Objects{Workload: cloneSetOf(10, "50%"), Pods: pods(5, 5), Now: now}
	apply := func(changes []Change) int {
		for _, c := range changes {
			for i := range o.Pods {
				if o.Pods[i].Name == c.Before.GetName() {
					o.Pods[i] = c.After.(*corev1.Pod)
				}
			}
		}
		return len(changes)
	}
	tracks := func() map[string]int {
		out := map[string]int{}
		for _, p := range o.Pods {
			out[p.Labels[keys.RolloutBatchID]+" "+p.Labels["track"]]++
		}
		return out
	}
	track := func(value string) *v1beta1.PodMetadata {
		return &v1beta1.PodMetadata{Labels: map[string]string{"track": value}}
	}
	for _, tc := range []struct {
		name     string
		metadata []*v1beta1.PodMetadata
		writes   int
		want     map[string]int
	}{
		{"the first batch has some", []*v1beta1.PodMetadata{track("canary"), nil}, 5, map[string]int{" ": 5, "1 canary": 1, "2 ": 4}},
		{"nothing is to be done", []*v1beta1.PodMetadata{track("canary"), nil}, 0, map[string]int{" ": 5, "1 canary": 1, "2 ": 4}},
		{"the plan is changed", []*v1beta1.PodMetadata{nil, track("early")}, 5, map[string]int{" ": 5, "1 ": 1, "2 early": 4}},
	} {
		if n := apply(BatchLabels(cloneSet(), o, "7", []int32{1, 5}, tc.metadata)); n != tc.writes {
			t.Errorf("%s: %d writes, want %d", tc.name, n, tc.writes)
		}
		if diff := cmp.Diff(tc.want, tracks()); diff != "" {
			t.Errorf("%s: batches and tracks of Pods (-want +got):\n%s", tc.name, diff)
		}
	}
	if n := apply(Undressed(o)); n != 4 {
		t.Errorf("in the end, %d Pods lose what their batch has given them, want 4", n)
	}
	if diff := cmp.Diff(map[string]int{" ": 5, "1 ": 1, "2 ": 4}, tracks()); diff != "" {
		t.Errorf("in the end, batches and tracks of Pods (-want +got):\n%s", diff)
	}
}

// TestMisdresses: a label that the selector of a workload goes by would have the Pod be nobody's.
func TestMisdresses(t *testing.T) {
	foreign := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": map[string]any{
		"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}},
	}}}}
	set := cloneSetOf(1, "0%")
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, workload := range map[string]Object{"a CloneSet": set, "a workload like a StatefulSet": foreign} {
		if why := Misdresses(workload, &v1beta1.PodMetadata{Labels: map[string]string{"app": "web"}}); why == "" {
			t.Errorf("%s may lose its Pods", name)
		}
		if why := Misdresses(workload, &v1beta1.PodMetadata{Labels: map[string]string{"track": "canary"}}); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}
