package facts

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// hashOfNginx is what kubelets put on a container main of image nginx:1.
const hashOfNginx = 0x6cf18e95

func owned(apiVersion string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: "CloneSet", Name: "web", Controller: ptr.To(true)}}
	}
}

// stateOf is the record of an update that has changed these containers.
func stateOf(environment bool, containers ...string) string {
	text, err := json.Marshal(pub.InPlaceUpdateState{
		UpdateEnvFromMetadata: environment, ContainerBatchesRecord: []pub.InPlaceUpdateContainerBatch{{Containers: containers}},
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// testPod returns one that is being updated in place and whose container main takes label tier into its environment.
func testPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{keys.InPlaceUpdateState: stateOf(true, "main")},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "main", Image: "nginx:1", Env: []corev1.EnvVar{
				{Name: "FIXED", Value: "x"},
				{
					Name:      "TIER",
					ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['tier']"}},
				},
			}},
			{Name: "side", Image: "busybox"},
		}},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse}},
			ContainerStatuses: []corev1.ContainerStatus{ // not in the order of the spec
				{
					Name: "side", ContainerID: "containerd://s", RestartCount: 2,
					State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				},
				{Name: "main", ContainerID: "containerd://m", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		},
	}
	owned("apps.kruise.io/v1beta1")(p)
	for _, change := range changes {
		change(p)
	}
	return p
}

func TestIsTold(t *testing.T) {
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"a Pod of a workload of Kruise":     {owned("apps.kruise.io/v1alpha1"), true},
		"a Pod of a workload of Kubernetes": {owned("apps/v1"), false},
		"a Pod of nobody":                   {func(p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"a Pod of nobody with injected sidecar": {func(p *corev1.Pod) {
			p.OwnerReferences, p.Annotations = nil, map[string]string{keys.SidecarSetHash: "{}"}
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsTold(testPod(tc.change)); got != tc.want {
				t.Errorf("IsTold() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	gold := inplace.EnvironmentHash([]corev1.EnvVar{{Name: "TIER", Value: "gold"}})
	always := corev1.ContainerRestartPolicyAlways
	beside := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "once"}, {Name: "proxy", RestartPolicy: &always}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{
			{Name: "once", ContainerID: "containerd://o"}, {Name: "proxy", ContainerID: "containerd://x"},
		}
	}
	all := map[string]Fact{
		"containerd://m": {Hash: 7, Environment: map[string]string{"TIER": "gold"}},
		"containerd://s": {Hash: 8, Environment: map[string]string{}},
		"containerd://x": {Hash: 9}, "containerd://o": {Hash: 10},
	}
	none := inplace.EnvironmentHash(nil)
	side := pub.RuntimeContainerMeta{
		Name: "side", ContainerID: "containerd://s", RestartCount: 2,
		Hashes: pub.RuntimeContainerHashes{PlainHash: 8, ExtractedEnvFromMetadataHash: none},
	}
	main := func(env uint64) pub.RuntimeContainerMeta {
		return pub.RuntimeContainerMeta{
			Name: "main", ContainerID: "containerd://m",
			Hashes: pub.RuntimeContainerHashes{PlainHash: 7, ExtractedEnvFromMetadataHash: env},
		}
	}
	cases := map[string]struct {
		pod   *corev1.Pod
		known map[string]Fact
		want  []pub.RuntimeContainerMeta
	}{
		"all is known, and told in the order of the spec": {testPod(), all, []pub.RuntimeContainerMeta{main(gold), side}},
		"what has changed since is not what it runs with": {
			testPod(func(p *corev1.Pod) { p.Labels["tier"] = "silver" }), all, []pub.RuntimeContainerMeta{main(gold), side},
		},
		"a container of which nothing is known": {
			testPod(), map[string]Fact{"containerd://s": all["containerd://s"]}, []pub.RuntimeContainerMeta{side},
		},
		"an environment that the runtime does not tell": {
			testPod(), map[string]Fact{"containerd://m": {Hash: 7}}, []pub.RuntimeContainerMeta{main(0)},
		},
		"a sidecar that starts first, not one that ends": {
			testPod(beside), all,
			[]pub.RuntimeContainerMeta{
				main(gold), side, {Name: "proxy", ContainerID: "containerd://x", Hashes: pub.RuntimeContainerHashes{PlainHash: 9}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Describe(tc.pod, tc.known).Containers); diff != "" {
				t.Errorf("Describe() (-want +got):\n%s", diff)
			}
		})
	}
}

func recorded(state string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[keys.InPlaceUpdateState] = state }
}

func TestToRestart(t *testing.T) {
	silver := func(p *corev1.Pod) { p.Labels["tier"] = "silver" }
	cases := map[string]struct {
		pod  *corev1.Pod
		fact Fact
		want []string
	}{
		"it runs with what the Pod has": {pod: testPod()},
		"it runs with what the Pod had": {pod: testPod(silver), want: []string{"containerd://m"}},
		"the label is gone, which is empty": {
			pod: testPod(func(p *corev1.Pod) { p.Labels = nil }), want: []string{"containerd://m"},
		},
		"no update is under way: somebody has changed a label": {
			pod: testPod(silver, func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }),
		},
		"it was never updated": {pod: testPod(silver, func(p *corev1.Pod) { p.Status.Conditions = nil })},
		"its image has changed too: the kubelet will": {
			pod: testPod(silver, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx:2" }),
		},
		"it does not run": {
			pod: testPod(silver, func(p *corev1.Pod) { p.Status.ContainerStatuses[1].State = corev1.ContainerState{} }),
		},
		"the Pod is going": {
			pod: testPod(silver, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
		},
		"the runtime does not tell": {pod: testPod(silver), fact: Fact{Hash: hashOfNginx}},
		"the update changes the image of another container, and somebody has changed a label": {
			pod: testPod(silver, recorded(stateOf(false, "side"))),
		},
		"the update changes the environment of another container, and somebody has changed a label": {
			pod: testPod(silver, recorded(stateOf(true, "side"))),
		},
		"the update removes the label from the template, which restarts nothing": {
			pod: testPod(func(p *corev1.Pod) { p.Labels = nil }, recorded(stateOf(false))),
		},
		"its batch has not come yet": {pod: testPod(silver, recorded(stateOf(true)))},
		"no update is recorded":      {pod: testPod(silver, func(p *corev1.Pod) { p.Annotations = nil })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fact := Fact{Hash: hashOfNginx, Environment: map[string]string{"TIER": "gold"}}
			if tc.fact.Hash != 0 {
				fact = tc.fact
			}
			got := ToRestart(tc.pod, map[string]Fact{"containerd://m": fact, "containerd://s": {Hash: 1, Environment: map[string]string{}}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ToRestart() (-want +got):\n%s", diff)
			}
		})
	}
}
