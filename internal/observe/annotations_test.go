package observe

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// talkative returns a Pod with 30 annotations of 1 KB each, and some more.
func talkative(more map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: maps.Clone(more)}}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	for i := range 30 {
		p.Annotations[fmt.Sprintf("example.com/note-%d", i)] = strings.Repeat("x", 1<<10)
	}
	return p
}

func TestAnnotationsOfForeignPodsThatNobodyReads(t *testing.T) {
	read := map[string]string{
		keys.MatchedWorkloadSpread: "{}", keys.RelatedBudget: "b", keys.NoProtect: "true", keys.InjectedPodState: "s",
		corev1.PodDeletionCost: "7", corev1.MirrorPodAnnotationKey: "x", "kubernetes.io/config.source": "file",
	}
	wants := func(p *corev1.Pod) bool { return p.Name == "wanted" }
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		named []string
		known bool
		want  []string // nil for all
	}{
		"what is read is kept":       {pod: talkative(read), known: true, want: slices.Collect(maps.Keys(read))},
		"what a marker names, too":   {pod: talkative(nil), named: []string{"example.com/note-3"}, known: true, want: []string{"example.com/note-3"}},
		"all, until markers are":     {pod: talkative(nil), named: []string{"example.com/note-3"}},
		"a few are kept, of any key": {pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}, known: true},
		"all of a Pod that is wanted": {pod: func() *corev1.Pod {
			p := talkative(nil)
			p.Name = "wanted"
			return p
		}(), known: true},
	} {
		t.Run(name, func(t *testing.T) {
			named := &AnnotationKeys{}
			named.Name(tc.named...)
			if tc.known {
				named.Complete()
			}
			before := maps.Clone(tc.pod.Annotations)
			want := before
			if tc.want != nil {
				want = map[string]string{}
				for _, key := range tc.want {
					want[key] = before[key]
				}
			}
			got, err := SlimPod(v1beta1.GroupVersion.Group, named, wants)(tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, podOf(got).(*corev1.Pod).Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMemoryOfForeignPods measures what a Pod with 30 annotations of 1 KB takes in a cache.
func TestMemoryOfForeignPods(t *testing.T) {
	const pods = 500
	heap := func(named *AnnotationKeys) int {
		transform := SlimPod(v1beta1.GroupVersion.Group, named)
		stored := make([]any, pods)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range stored {
			var err error
			p := talkative(nil)
			for key, value := range p.Annotations { // equal annotations would be in memory once
				p.Annotations[key] = strconv.Itoa(i) + value
			}
			if stored[i], err = transform(p); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(stored)
		return int(after.HeapAlloc-before.HeapAlloc) / pods
	}
	complete := &AnnotationKeys{}
	complete.Complete()
	all, read := heap(&AnnotationKeys{}), heap(complete)
	t.Logf("%d bytes with all annotations, %d with those that are read", all, read)
	if all < 30<<10 || read > 4<<10 {
		t.Errorf("a Pod takes %d bytes with all annotations, and %d with those that are read, want 4096 at most", all, read)
	}
}
