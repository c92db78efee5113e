package observe

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestAdoptable(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	set := func(uid string) *v1beta1.DaemonSet {
		return &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "ns", UID: types.UID(uid)}}
	}
	deleted := func(set *v1beta1.DaemonSet) *v1beta1.DaemonSet {
		now := metav1.Now()
		set.DeletionTimestamp, set.Finalizers = &now, []string{metav1.FinalizerOrphanDependents}
		return set
	}
	pod := func(name, app string, owner *v1beta1.DaemonSet) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"app": app}}}
		if owner != nil {
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind("DaemonSet"))}
		}
		return p
	}
	leaving := pod("leaving", "agent", nil)
	leaving.Finalizers = []string{"example.com/held"}
	pods := []client.Object{pod("orphan", "agent", nil), pod("other", "other", nil), pod("owned", "agent", set("1")), leaving}
	for name, tc := range map[string]struct {
		cached, live *v1beta1.DaemonSet
		want         []string
		err          error
	}{
		"the owner is what the cache says": {cached: set("1"), live: set("1"), want: []string{"orphan"}},
		"another has its name by now":      {cached: set("1"), live: set("2"), err: ErrOutdated},
		"it is gone":                       {cached: set("1"), err: ErrOutdated},
		"it is being deleted":              {cached: set("1"), live: deleted(set("1")), err: ErrOutdated},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pods...)
			if tc.live != nil {
				builder = builder.WithObjects(tc.live)
			}
			live := builder.Build()
			if err := live.Delete(context.Background(), leaving); err != nil {
				t.Fatal(err)
			}
			found, err := Reader{Reader: live}.Adoptable(t.Context(), live, tc.cached, labels.SelectorFromSet(labels.Set{"app": "agent"}))
			if !errors.Is(err, tc.err) {
				t.Fatalf("the error is %v, want %v", err, tc.err)
			}
			var got []string
			for _, p := range found {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlimNodeKeepsWhatPodsAskOf(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:            "n1",
			UID:             "u",
			ResourceVersion: "7",
			Labels:          map[string]string{"a": "b"},
			Annotations:     map[string]string{"long": "text"},
		},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k"}}, PodCIDR: "10.0.0.0/24"},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}},
	}
	got, err := SlimNode(node)
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSlimPodKeepsTheOutlineOfForeignPods(t *testing.T) {
	foreign := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            "p",
			UID:             "u",
			ResourceVersion: "7",
			Labels:          map[string]string{"a": "b"},
			Annotations:     map[string]string{"c": "d"},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Volumes: []corev1.Volume{{Name: "v"}}, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "g"}},
			Containers: []corev1.Container{
				{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "long"}}, Ports: []corev1.ContainerPort{{ContainerPort: 1}}},
			},
		},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			PodIP:             "10.0.0.1",
			HostIP:            "10.0.0.2",
			Conditions:        []corev1.PodCondition{{Type: "g"}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}},
		},
	}
	want := foreign.DeepCopy()
	want.ManagedFields, want.Spec.Volumes, want.Spec.Containers[0].Env, want.Status.HostIP = nil, nil, nil, ""
	got, err := SlimPod(v1beta1.GroupVersion.Group, &AnnotationKeys{})(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, podOf(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
