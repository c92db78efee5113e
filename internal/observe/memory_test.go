package observe

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// podsOfATemplate is how many Pods a workload has in a measured cluster.
const podsOfATemplate = 5

// encodedPod returns a Pod as an API server sends it: of one of many workloads of a kind, with two containers that run, as clusters have
// them.
func encodedPod(number int, random *rand.Rand, of schema.GroupVersionKind) []byte {
	id := func() string {
		return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", random.Uint32(), 1, 2, 3, random.Uint64()>>16)
	}
	template := number / podsOfATemplate
	name := fmt.Sprintf("app-%d-7c9d6f5b4", template)
	moment := metav1.NewTime(time.Unix(1_800_000_000+int64(number), 0))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%05x", name, number), GenerateName: name + "-", Namespace: fmt.Sprintf("team-%d", template%200),
			UID: types.UID(id()), ResourceVersion: fmt.Sprint(1_000_000 + number), CreationTimestamp: moment,
			Labels: map[string]string{
				"app.kubernetes.io/name": fmt.Sprintf("app-%d", template), "app.kubernetes.io/instance": "production",
				"app.kubernetes.io/managed-by": "Helm", "pod-template-hash": "7c9d6f5b4", "team": fmt.Sprintf("team-%d", template%200),
			},
			Annotations: map[string]string{"cni.example.com/address": fmt.Sprint("10.0.", number), "prometheus.io/scrape": "true",
				"checksum/config": strings.Repeat(fmt.Sprintf("%08x", template), 8)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: of.GroupVersion().String(), Kind: of.Kind, Name: name,
				UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", template)), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &moment,
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{` + strings.Repeat(`"f:labels":{},`, 60) + `"f:x":{}}}`)}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d.example.com", number%5000), ServiceAccountName: "default", SchedulerName: "default-scheduler",
			Volumes: []corev1.Volume{{Name: "kube-api-access-" + id()[:5], VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](3607)}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}}}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: fmt.Sprintf("10.%d.%d.%d", number>>16, number>>8&255, number&255),
			StartTime: &moment, QOSClass: corev1.PodQOSBurstable},
	}
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	for _, condition := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: moment})
	}
	for _, container := range []string{"app", "proxy"} {
		image := fmt.Sprintf("registry.example.com/team-%d/%s:v1.%d.0", template%200, container, template%7)
		c := corev1.Container{Name: container, Image: image, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
			VolumeMounts: []corev1.VolumeMount{{Name: p.Spec.Volumes[0].Name, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}}}
		c.Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		}
		for i := range 8 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: fmt.Sprintf("value-%d-%d", template, i)})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container, Image: image, ImageID: "registry.example.com/x@sha256:" + strings.Repeat(fmt.Sprintf("%08x", template%1400), 8),
			ContainerID: "containerd://" + strings.ReplaceAll(id()+id(), "-", ""), Ready: true, Started: ptr.To(true),
			State:     corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: moment}},
			Resources: c.Resources.DeepCopy(), AllocatedResources: c.Resources.Requests,
		})
	}
	encoded, err := p.Marshal()
	if err != nil {
		panic(err)
	}
	return encoded
}

var (
	replicaSets = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	cloneSets   = v1beta1.GroupVersion.WithKind("CloneSet")
)

// heapOf returns what pods of a kind of workload take in a cache with the indexes of AddIndexes, in bytes a Pod.
func heapOf(tb testing.TB, pods int, of schema.GroupVersionKind, transform func(any) (any, error)) int {
	tb.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	index := func(of func(*corev1.Pod) []string) cache.IndexFunc {
		return func(object any) ([]string, error) {
			p := object.(*corev1.Pod)
			var out []string
			for _, value := range of(p) {
				out = append(out, p.Namespace+"/"+value, "__all_namespaces/"+value)
			}
			return out, nil
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, ofPods(cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		ByController:         index(func(p *corev1.Pod) []string { return ControllerKey(p) }),
		ByInjected:           index(func(p *corev1.Pod) []string { return InjectedKeys(p) }),
	}))
	for number := range pods {
		p := &corev1.Pod{}
		if err := p.Unmarshal(encodedPod(number, random, of)); err != nil {
			tb.Fatal(err)
		}
		stored, err := transform(p)
		if err != nil {
			tb.Fatal(err)
		}
		if err := store.Add(stored); err != nil {
			tb.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(store)
	return int(after.HeapAlloc-before.HeapAlloc) / pods
}

// TestMemory measures what Pods take in a cache, its indexes and the interner included.
func TestMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		of   schema.GroupVersionKind
		most int
	}{
		"of another workload": {of: replicaSets, most: 2048},
		"of a CloneSet":       {of: cloneSets, most: 7680},
	} {
		t.Run(name, func(t *testing.T) {
			got := heapOf(t, 10_000, tc.of, SlimPod(v1beta1.GroupVersion.Group, &AnnotationKeys{}))
			whole := heapOf(t, 2_000, tc.of, func(object any) (any, error) { return object, nil })
			t.Logf("%d bytes a Pod, of %d as it is decoded", got, whole)
			if got > tc.most {
				t.Errorf("a Pod takes %d bytes, want %d at most", got, tc.most)
			}
		})
	}
}

// TestPodsOfATemplateShare: Pods of a CloneSet lose nothing, and have what their template says only once.
func TestPodsOfATemplateShare(t *testing.T) {
	transform := SlimPod(v1beta1.GroupVersion.Group, &AnnotationKeys{})
	random := rand.New(rand.NewPCG(1, 2))
	var stored []*corev1.Pod
	for number := range 2 * podsOfATemplate {
		p, want := &corev1.Pod{}, &corev1.Pod{}
		encoded := encodedPod(number, random, cloneSets)
		if err := errors.Join(p.Unmarshal(encoded), want.Unmarshal(encoded)); err != nil {
			t.Fatal(err)
		}
		want.ManagedFields = nil
		for range 2 { // as the reflector does with what a streaming list has sent
			got, err := transform(p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("pod %d (-want +got):\n%s", number, diff)
			}
		}
		stored = append(stored, p)
	}
	shares := func(a, b *corev1.Pod) []bool {
		c, d := &a.Spec.Containers[0], &b.Spec.Containers[0]
		return []bool{
			&c.Env[0] == &d.Env[0], &c.Ports[0] == &d.Ports[0], &a.OwnerReferences[0] == &b.OwnerReferences[0],
			unsafe.StringData(a.Labels["team"]) == unsafe.StringData(b.Labels["team"]),
			a.Spec.Volumes[0].Projected == b.Spec.Volumes[0].Projected,
		}
	}
	if got := shares(stored[0], stored[1]); slices.Contains(got, false) {
		t.Errorf("Pods of one template have copies of their own: shared are %v", got)
	}
	if got := shares(stored[0], stored[podsOfATemplate]); slices.Contains(got[:3], true) {
		t.Errorf("Pods of two templates share what differs: %v", got)
	}
	if &stored[0].Spec.Containers[0].VolumeMounts[0] == &stored[1].Spec.Containers[0].VolumeMounts[0] {
		t.Error("Pods share mounts of volumes, whose names differ")
	}
}
