package pod_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

func TestOwnershipOf(t *testing.T) {
	matching := func() *build.PodBuilder { return build.Pod("p").Label("app", "web") }
	notController := build.Pod("p").Label("app", "web").Obj()
	notController.OwnerReferences = []metav1.OwnerReference{{Kind: "CloneSet", Name: "web", UID: "uid-web"}}
	cases := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"ours":                    {matching().Controller("uid-web").Obj(), "owned"},
		"ours and being deleted":  {matching().Controller("uid-web").Deleting().Obj(), "owned"},
		"ours and failed":         {matching().Controller("uid-web").Phase(corev1.PodFailed).Obj(), "owned"},
		"ours, with other labels": {build.Pod("p").Controller("uid-web").Obj(), "release"},
		"ours, with other labels, and being deleted": {build.Pod("p").Controller("uid-web").Deleting().Obj(), "owned"},
		"another's, though it matches":               {matching().Controller("uid-other").Obj(), ""},
		"one of the same name before us":             {matching().Controller("uid-before").Obj(), ""},
		"nobody's":                                   {matching().Obj(), "adoptable"},
		"nobody's, and being deleted":                {matching().Deleting().Obj(), ""},
		"nobody's, with other labels":                {build.Pod("p").Obj(), ""},
		"we are an owner that does not control":      {notController, "adoptable"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := pod.OwnershipOf("uid-web", labels.SelectorFromSet(labels.Set{"app": "web"}), []*corev1.Pod{tc.pod})
			var got string
			for is, pods := range map[string][]*corev1.Pod{"owned": s.Owned, "release": s.Release, "adoptable": s.Adoptable} {
				if len(pods) > 0 {
					got += is
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sort of Pod (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoPodIsOfTwoSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := build.AnyPods(12).Draw(t, "pods")
		selector := labels.SelectorFromSet(labels.Set{"group": "a"})
		s := pod.OwnershipOf("uid-web", selector, pods)
		sorted := build.Names(slices.Concat(s.Owned, s.Release, s.Adoptable))
		slices.Sort(sorted)
		if len(slices.Compact(slices.Clone(sorted))) != len(sorted) {
			t.Fatalf("a Pod is of two sorts: %v", sorted)
		}
		for _, p := range pods {
			controller := metav1.GetControllerOf(p)
			if ours := controller != nil && controller.UID == "uid-web"; ours != (slices.Contains(s.Owned, p) || slices.Contains(s.Release, p)) {
				t.Fatalf("%s is controlled by us: %t, but is of another sort", p.Name, ours)
			}
		}
	})
}
