// Package daemonset runs DaemonSets, as a user would have them, on a real control plane with simulated nodes: one cluster and one manager for all
// tests, and for each a namespace and nodes of its own, which it may label and taint.
package daemonset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of all tests.
var shared = &scene.Site{Name: "daemons", Options: cluster.Options{Nodes: 200}}

func TestMain(m *testing.M) { scene.Main(m, shared) }

// env is a namespace and some nodes, for one test.
type env struct{ *scene.Env }

func newEnv(t *testing.T, nodes int) *env {
	t.Helper()
	t.Parallel()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	for range nodes {
		e.AddNode()
	}
	return e
}

func (e *env) taint(name string, effect corev1.TaintEffect) {
	e.Helper()
	e.EditNode(name, func(node *corev1.Node) {
		node.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: effect}}
	})
}

// describe prints what is in the namespace, for the reader of a failure.
func (e *env) describe() string {
	var out strings.Builder
	var sets v1beta1.DaemonSetList
	if err := e.Client.List(context.Background(), &sets, client.InNamespace(e.Namespace)); err != nil {
		return err.Error()
	}
	for i := range sets.Items {
		status, err := yaml.Marshal(sets.Items[i].Status)
		fmt.Fprintf(&out, "DaemonSet %s, generation %d: %s %v\n", sets.Items[i].Name, sets.Items[i].Generation, status, err)
	}
	for _, p := range e.allPods() {
		fmt.Fprintf(&out, "Pod %s on %s %s %s deleted=%v labels=%v\n", p.Name, p.Spec.NodeName, p.Status.Phase, p.Spec.Containers[0].Image, p.DeletionTimestamp, p.Labels)
	}
	return out.String()
}

// manifest is a DaemonSet on the test's nodes. The strategy is that of a rolling update, as YAML in one line; more are further fields of the spec.
func (e *env) manifest(strategy string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      nodeSelector: {%s: %s}
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: "nginx:1.27"}]
  updateStrategy: {rollingUpdate: %s}
  %s`, scene.Pool, e.Namespace, strategy, strings.Join(more, "\n  "))
}

func (e *env) set() *v1beta1.DaemonSet {
	e.Helper()
	set := &v1beta1.DaemonSet{}
	e.Read("agent", set)
	return set
}

// edit changes the DaemonSet as a user would, in v1beta1.
func (e *env) edit(changes ...func(*v1beta1.DaemonSet)) {
	e.Helper()
	scene.Edit(e.Env, "agent", &v1beta1.DaemonSet{}, func(set *v1beta1.DaemonSet) {
		for _, change := range changes {
			change(set)
		}
	})
}

// strategy changes the rolling update, as YAML; what it does not name stays.
func strategy(text string) func(*v1beta1.DaemonSet) {
	return func(set *v1beta1.DaemonSet) {
		if err := yaml.Unmarshal([]byte(text), set.Spec.UpdateStrategy.RollingUpdate); err != nil {
			panic(err) // a test that can't be read
		}
	}
}

func image(image string) func(*v1beta1.DaemonSet) {
	return func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = image }
}

func (e *env) allPods() []corev1.Pod {
	e.Helper()
	pods := e.Pods()
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(nodeOf(&a)+a.Name, nodeOf(&b)+b.Name) })
	return pods
}

// pods returns the Pods that are not being deleted, by node.
func (e *env) pods() []corev1.Pod {
	e.Helper()
	return slices.DeleteFunc(e.allPods(), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

func (e *env) podOn(node string) *corev1.Pod {
	e.Helper()
	for _, p := range e.pods() {
		if nodeOf(&p) == node {
			return &p
		}
	}
	e.Fatalf("there is no Pod on %s\n%s", node, e.describe())
	return nil
}

func nodeOf(p *corev1.Pod) string { return scene.PinnedTo(p) }

// settled waits until the DaemonSet has seen its spec, and all wanted nodes have an available Pod, so many of them updated, and no other.
func (e *env) settled(desired, updated int) *v1beta1.DaemonSet {
	e.Helper()
	var set *v1beta1.DaemonSet
	e.Eventually(fmt.Sprintf("%d nodes have an available Pod, %d of them updated", desired, updated), func() error {
		set = e.set()
		s := set.Status
		got := []int{int(s.DesiredNumberScheduled), int(s.CurrentNumberScheduled), int(s.NumberReady), int(s.NumberAvailable), int(s.UpdatedNumberScheduled)}
		if want := []int{desired, desired, desired, desired, updated}; s.ObservedGeneration != set.Generation || !slices.Equal(got, want) {
			return fmt.Errorf("desired, current, ready, available, updated are %v, want %v, observed generation %d of %d", got, want, s.ObservedGeneration, set.Generation)
		}
		if all := len(e.allPods()); all != desired+int(s.NumberMisscheduled) {
			return fmt.Errorf("%d Pods are there", all)
		}
		return nil
	})
	return set
}

// updatedNodes returns the nodes whose Pod has the image.
func (e *env) updatedNodes(image string) []string {
	e.Helper()
	var out []string
	for _, p := range e.pods() {
		if p.Spec.Containers[0].Image == image {
			out = append(out, nodeOf(&p))
		}
	}
	return out
}

func uids(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		out = append(out, string(pods[i].UID))
	}
	slices.Sort(out)
	return out
}

// last returns the last n of the test's nodes.
func (e *env) last(n int) []string { return e.Nodes[len(e.Nodes)-n:] }

func (e *env) same(what string, want, got []string) {
	e.Helper()
	if !slices.Equal(want, got) {
		e.Errorf("%s: %v, want %v\n%s", what, got, want, e.describe())
	}
}
