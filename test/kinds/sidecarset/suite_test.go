// Package sidecarset runs SidecarSets, as a user would have them, on a real control plane with simulated nodes: one cluster and one manager for all
// tests, and for each a namespace and SidecarSets of its own.
package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of all tests. One manager at a time needs no election, and a killed leader's Lease would only make the next one wait.
var shared = &scene.Site{
	Name: "sidecarset", Options: cluster.Options{Nodes: 5, Args: []string{"--sim-restart", "200ms"}}, Args: []string{"--v=1", "--enable-leader-election=false"},
}

func TestMain(m *testing.M) { scene.MainOfKind(m, shared) }

// env is a namespace of the shared cluster, for one test.
type env struct{ *scene.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return newSerialEnv(t)
}

// newSerialEnv is for a test that others must not run beside.
func newSerialEnv(t *testing.T) *env {
	t.Helper()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	return e
}

func (e *env) describe() string {
	var out strings.Builder
	var sets v1beta1.SidecarSetList
	var pods corev1.PodList
	ctx := context.WithoutCancel(e.Ctx)
	if err := errors.Join(e.List(ctx, &pods, client.InNamespace(e.Namespace)), e.List(ctx, &sets)); err != nil {
		return err.Error()
	}
	for i := range sets.Items {
		fmt.Fprintf(&out, "SidecarSet %s generation %d: %+v\n", sets.Items[i].Name, sets.Items[i].Generation, sets.Items[i].Status)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		fmt.Fprintf(&out, "Pod %s %s deleted=%v ready=%t annotations=%v\n", p.Name, p.Status.Phase, p.DeletionTimestamp, isReady(p), p.Annotations)
		for _, c := range p.Status.ContainerStatuses {
			fmt.Fprintf(&out, "  %s %s ready=%t restarts=%d\n", c.Name, c.Image, c.Ready, c.RestartCount)
		}
	}
	return out.String()
}

// newSet creates a SidecarSet for Pods of this namespace with the label app=web; its spec goes on in YAML.
func (e *env) newSet(spec string) *v1beta1.SidecarSet {
	e.Helper()
	set := &v1beta1.SidecarSet{}
	text := "selector: {matchLabels: {app: web}}\nnamespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + e.Namespace + "}}\n" + spec
	e.Must(yaml.UnmarshalStrict([]byte(text), &set.Spec))
	set.Name = e.Namespace
	e.create(set)
	return set
}

// create creates a SidecarSet and waits until new Pods get its sidecars: admission hears of it a moment later.
func (e *env) create(set *v1beta1.SidecarSet) {
	e.Helper()
	e.Must(e.Create(e.Ctx, set))
	e.CleanUp(set)
	e.Eventually("new Pods get the sidecars", func() error {
		p := webPod(e.Namespace, "tried")
		if err := e.Create(e.Ctx, p, client.DryRunAll); err != nil {
			return err
		}
		if p.Annotations["kruise.io/sidecarset-injected-list"] == "" {
			return fmt.Errorf("a Pod has none")
		}
		return nil
	})
}

func webPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
}

// newLog creates a SidecarSet with one container, and an update of some strategy.
func (e *env) newLog(strategy string) *v1beta1.SidecarSet {
	e.Helper()
	return e.newSet("containers: [{name: log, image: \"log:1\"}]\nupdateStrategy: " + strategy)
}

func (e *env) apply(text string) {
	e.Helper()
	e.Make(text)
}

// applyForAll makes an object of the whole cluster, which it deletes in the end.
func (e *env) applyForAll(text string) *unstructured.Unstructured {
	e.Helper()
	o := &unstructured.Unstructured{}
	e.Must(yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", " ")), &o.Object))
	e.Must(e.Create(e.Ctx, o))
	e.CleanUp(o)
	return o
}

// set reads the SidecarSet of this test.
func (e *env) set() *v1beta1.SidecarSet {
	e.Helper()
	set := &v1beta1.SidecarSet{}
	e.Must(e.Get(e.Ctx, client.ObjectKey{Name: e.Namespace}, set))
	return set
}

// edit changes the SidecarSet of this test, and waits until the controller has taken note.
func (e *env) edit(change func(*v1beta1.SidecarSet)) {
	e.Helper()
	set := &v1beta1.SidecarSet{}
	scene.Edit(e.Env, e.Namespace, set, change)
	e.Eventually("the change is taken note of", func() error {
		if seen := e.set().Status.ObservedGeneration; seen < set.Generation {
			return fmt.Errorf("it speaks of generation %d, not %d", seen, set.Generation)
		}
		return nil
	})
}

func (e *env) image(image string) {
	e.Helper()
	e.edit(func(set *v1beta1.SidecarSet) { set.Spec.Containers[0].Image = image })
}

// newPods creates Pods web-0, web-1 and so on, with annotations, and waits until they are ready.
func (e *env) newPods(count int, annotations ...string) {
	e.Helper()
	for i := range count {
		p := webPod(e.Namespace, fmt.Sprintf("web-%d", i))
		for _, a := range annotations {
			key, value, _ := strings.Cut(a, ": ")
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value)
		}
		e.Must(e.Create(e.Ctx, p))
	}
	e.Eventually("all Pods are ready", func() error { return e.ready(count) })
}

func (e *env) ready(want int) error {
	ready := 0
	for _, p := range e.pods() {
		if isReady(p) {
			ready++
		}
	}
	if ready != want {
		return fmt.Errorf("%d Pods are ready, not %d", ready, want)
	}
	return nil
}

func (e *env) pods() []*corev1.Pod {
	e.Helper()
	var pods []*corev1.Pod
	for _, p := range e.Pods() {
		pods = append(pods, &p)
	}
	return pods
}

func (e *env) pod(name string) *corev1.Pod {
	e.Helper()
	p := &corev1.Pod{}
	e.Read(name, p)
	return p
}

// counts waits until the status says so many Pods are matched, updated, ready, and both of these.
func (e *env) counts(want ...int32) {
	e.Helper()
	e.Eventually(fmt.Sprintf("the counts are %v", want), func() error { return e.countsAre(want...) })
}

func (e *env) countsAre(want ...int32) error {
	s := e.set().Status
	if got := []int32{s.MatchedPods, s.UpdatedPods, s.ReadyPods, s.UpdatedReadyPods}; fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("matched, updated, ready and both are %v, not %v", got, want)
	}
	return nil
}

func isReady(p *corev1.Pod) bool { return scene.IsReady(p) && p.DeletionTimestamp == nil }

func imageOf(p *corev1.Pod, container string) string {
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == container {
			return p.Spec.Containers[i].Image
		}
	}
	return ""
}

func restartsOf(p *corev1.Pod, container string) int32 {
	for _, status := range p.Status.ContainerStatuses {
		if status.Name == container {
			return status.RestartCount
		}
	}
	return -1
}

// condition returns the status and the message of a Pod's condition.
func condition(p *corev1.Pod, kind corev1.PodConditionType) string {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Message
		}
	}
	return ""
}
