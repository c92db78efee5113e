package nativedaemonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// TestNoPodGoesByAnOlderLook: before Pods are deleted, the DaemonSet is read around the cache.
func TestNoPodGoesByAnOlderLook(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		change   func(*appsv1.DaemonSet)
		outdated bool
	}{
		"it is as the cache shows it":          {func(*appsv1.DaemonSet) {}, false},
		"its template has changed":             {func(set *appsv1.DaemonSet) { set.Generation++ }, true},
		"another batch has been let through":   {func(set *appsv1.DaemonSet) { set.Annotations[keys.DaemonSetControl] = "{}" }, true},
		"another one has taken its name":       {func(set *appsv1.DaemonSet) { set.UID = "other" }, true},
		"it is gone, and another one is there": {func(set *appsv1.DaemonSet) { set.Name = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := frozen(t)
			s.DaemonSet.Labels = map[string]string{keys.WorkloadType: "daemonset"}
			r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
			r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "web"}
			cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.DaemonSet.DeepCopy(), r)
			owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "web", UID: "u", Controller: ptr.To(true)}}
			for _, p := range s.Pods {
				p.Namespace, p.OwnerReferences = "ns", owner
				cached.WithObjects(p)
			}
			for _, revision := range s.Revisions {
				revision.Namespace, revision.OwnerReferences = "ns", owner
				cached.WithObjects(revision)
			}
			now := s.DaemonSet.DeepCopy()
			tc.change(now)
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(now).Build()
			v, err := read(t.Context(), loop.Reads{Reader: observe.Reader{Reader: cached.Build()}, Live: live, Tracked: live, Now: s.Now}, s.DaemonSet)
			if err != nil || v.Outdated != tc.outdated {
				t.Errorf("outdated: %t, %v, want %t", v.Outdated, err, tc.outdated)
			}
			if got := len(Plan(v).Actions()); (got == 0) != tc.outdated {
				t.Errorf("%d writes", got)
			}
		})
	}
}
