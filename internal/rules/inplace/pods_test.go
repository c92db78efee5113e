package inplace

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// at returns a time so many seconds after the tests' start.
func at(seconds float64) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// to is the way to a revision, without a grace period, at the start of the tests.
func to(revision string) Target {
	return Target{Revision: revision, Labels: map[string]string{"controller-revision-hash": revision}, Now: at(0)}
}

func container(name, image string, env ...corev1.EnvVar) corev1.Container {
	return corev1.Container{Name: name, Image: image, Env: env}
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func barrier(priority string) corev1.EnvVar {
	return corev1.EnvVar{Name: keys.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "p_" + priority},
	}}
}

// resources returns requests and limits as "cpu", "memory".
func resources(cpu, memory string) corev1.ResourceRequirements {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}
}

func templateOf(containers ...corev1.Container) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: containers},
	}
}

// podOf returns a Pod of the template that has run at revision web-1 for a while.
func podOf(template *corev1.PodTemplateSpec) *corev1.Pod {
	template = template.DeepCopy()
	p := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	p.Name = "web-x"
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels["controller-revision-hash"] = "web-1"
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
	p.Status.Phase = corev1.PodRunning
	for _, condition := range []corev1.PodConditionType{pub.InPlaceUpdateReady, corev1.ContainersReady, corev1.PodReady} {
		pod.SetCondition(p, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue}, at(-60))
	}
	node{daemon: true}.run(p)
	return p
}

// node stands in for the kubelet of a Pod, and for the node daemon if there is one.
type node struct{ daemon bool }

// run brings all containers of the Pod to their spec and metadata.
func (n node) run(p *corev1.Pod) {
	for i := range p.Spec.Containers {
		n.start(p, p.Spec.Containers[i].Name)
	}
}

// start brings one container of the Pod to its spec and metadata, and restarts it if it has to.
func (n node) start(p *corev1.Pod, name string) {
	spec, status := pod.Container(p, name), pod.ContainerStatus(p, name)
	if status == nil {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, RestartCount: -1})
		status = &p.Status.ContainerStatuses[len(p.Status.ContainerStatuses)-1]
	}
	meta := runtimeMeta(p)[name]
	if status.Image != spec.Image || n.daemon && meta.Hashes.ExtractedEnvFromMetadataHash != EnvironmentHash(Environment(p, spec)) {
		status.RestartCount++
		status.ContainerID = fmt.Sprintf("containerd://%s-%d", name, status.RestartCount)
	}
	status.Image, status.ImageID, status.Ready, status.Resources = spec.Image, "sha256:of-"+spec.Image, true, spec.Resources.DeepCopy()
	if n.daemon {
		n.report(p, spec, status)
	}
}

// report writes what the node daemon knows of a container.
func (node) report(p *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus) {
	all := runtimeMeta(p)
	if all == nil {
		all = map[string]pub.RuntimeContainerMeta{}
	}
	all[spec.Name] = pub.RuntimeContainerMeta{
		Name: spec.Name, ContainerID: status.ContainerID, RestartCount: status.RestartCount,
		Hashes: pub.RuntimeContainerHashes{PlainHash: plainHash(spec), ExtractedEnvFromMetadataHash: EnvironmentHash(Environment(p, spec))},
	}
	var set pub.RuntimeContainerMetaSet
	for _, meta := range all {
		set.Containers = append(set.Containers, meta)
	}
	write(p, set, keys.RuntimeContainersMeta)
}

// recorded returns a Pod of a live cluster.
func recorded(t *testing.T, moment string) *corev1.Pod {
	t.Helper()
	text, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	if err := json.Unmarshal(text, &pods); err != nil {
		t.Fatal(err)
	}
	if pods[moment] == nil {
		t.Fatalf("no Pod was recorded %s", moment)
	}
	return pods[moment]
}

// change returns the way between two templates, with all that can be switched on.
func change(t *testing.T, from, to *corev1.PodTemplateSpec) Change {
	t.Helper()
	c, refusal := DiffTemplates(from, to, everything())
	if refusal != nil {
		t.Fatal(refusal)
	}
	return c
}

func everything() Options { return Options{EnvFromMetadata: true, VerticalScaling: true} }

// stateOf returns the record on the Pod, which has to be there.
func stateOf(t *testing.T, p *corev1.Pod) *pub.InPlaceUpdateState {
	t.Helper()
	state, err := State(p)
	if err != nil || state == nil {
		t.Fatalf("the Pod has no record that can be read: %v", err)
	}
	return state
}

// step advances the Pod and fails on a problem.
func step(t *testing.T, p *corev1.Pod, seconds float64) Step {
	t.Helper()
	s := Advance(p, everything(), at(seconds))
	if s.Problem != nil {
		t.Fatal(s.Problem)
	}
	return s
}

func gate(p *corev1.Pod) corev1.ConditionStatus {
	return pod.Condition(p, pub.InPlaceUpdateReady).Status
}

func images(p *corev1.Pod) map[string]string {
	out := map[string]string{}
	for i := range p.Spec.Containers {
		out[p.Spec.Containers[i].Name] = p.Spec.Containers[i].Image
	}
	return out
}
