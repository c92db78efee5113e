// Package jobs runs BroadcastJobs and AdvancedCronJobs, as a user would have them, on a real control plane with simulated nodes: one cluster and one
// manager for all tests, and for each a namespace and nodes of its own, which it may label and taint.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of all tests. The lease of a manager that was killed must not keep the next one waiting.
var shared = &scene.Site{
	Name: "jobs", Options: cluster.Options{Nodes: 80},
	Args: []string{"--enable-leader-election=false", "--feature-gates=ImagePullJobGate=true"},
}

func TestMain(m *testing.M) { scene.Main(m, shared) }

// pool is the label by which a test's nodes are known.
const pool = scene.Pool

// env is a namespace and some nodes, for one test.
type env struct{ *scene.Env }

// newEnv returns a namespace and nodes for a test that runs beside others.
func newEnv(t *testing.T, nodes int) *env {
	t.Helper()
	t.Parallel()
	return newSerialEnv(t, nodes)
}

// newSerialEnv does the same for a test that runs alone, because it stops the manager.
func newSerialEnv(t *testing.T, nodes int) *env {
	t.Helper()
	e := &env{shared.Enter(t)}
	e.Describe = e.describe
	for range nodes {
		e.AddNode()
	}
	return e
}

func (e *env) taint(name string, taints ...corev1.Taint) {
	e.Helper()
	e.EditNode(name, func(node *corev1.Node) { node.Spec.Taints = taints })
}

// describe prints what is in the namespace, for the reader of a failure.
func (e *env) describe() string {
	var out strings.Builder
	print := func(kind, name string, status any) {
		text, err := yaml.Marshal(status)
		fmt.Fprintf(&out, "%s %s: %s %v\n", kind, name, text, err)
	}
	var broadcast v1beta1.BroadcastJobList
	var cron v1beta1.AdvancedCronJobList
	if err := errors.Join(
		e.Client.List(context.Background(), &broadcast, client.InNamespace(e.Namespace)),
		e.Client.List(context.Background(), &cron, client.InNamespace(e.Namespace)),
	); err != nil {
		return err.Error()
	}
	for i := range broadcast.Items {
		print("BroadcastJob", broadcast.Items[i].Name, broadcast.Items[i].Status)
	}
	for i := range cron.Items {
		print("AdvancedCronJob", cron.Items[i].Name, cron.Items[i].Status)
	}
	for _, p := range e.pods() {
		fmt.Fprintf(
			&out, "Pod %s for %s on %q %s deleted=%v annotations=%v\n", p.Name, nodeOf(&p), p.Spec.NodeName, p.Status.Phase,
			p.DeletionTimestamp, p.Annotations,
		)
	}
	return out.String()
}

func (e *env) create(text string) *unstructured.Unstructured {
	e.Helper()
	return e.Make(text)
}

// refused returns why an object can't be created.
func (e *env) refused(text string) string {
	e.Helper()
	err := e.Client.Create(e.Ctx, e.Manifest(text), client.DryRunAll)
	if err == nil {
		e.Errorf("created:\n%s", text)
		return ""
	}
	return err.Error()
}

func (e *env) pods() []corev1.Pod {
	e.Helper()
	pods := e.Pods()
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(nodeOf(&a)+a.Name, nodeOf(&b)+b.Name) })
	return pods
}

func nodeOf(p *corev1.Pod) string { return scene.PinnedTo(p) }

// finish has the container of the Pod on a node exit with a code: simulated nodes start a container anew when its image is changed, and
// heed then what the Pod says of its end.
func (e *env) finish(node string, code int) {
	e.Helper()
	e.Eventually("there is a Pod on "+node+" that runs", func() error {
		for _, p := range e.pods() {
			if nodeOf(&p) != node || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
				continue
			}
			before := p.DeepCopy()
			p.Annotations["sim.kruise.io/run-for"] = "0s"
			p.Annotations["sim.kruise.io/exit-code"] = fmt.Sprint(code)
			p.Spec.Containers[0].Image = "busybox:2"
			return e.Client.Patch(e.Ctx, &p, client.MergeFrom(before))
		}
		return errors.New("there is none")
	})
}

// events returns how often each reason was given for an object.
func (e *env) events(name string) map[string]int {
	e.Helper()
	out := map[string]int{}
	for _, event := range e.Events(name) {
		out[event.Reason] += int(max(1, event.Count))
	}
	return out
}

func TestExamples(t *testing.T) {
	e := newEnv(t, 0)
	e.AcceptsExamples("broadcastjob-*.yaml")
	e.AcceptsExamples("advancedcronjob-*.yaml")
	e.AcceptsExamples("ephemeraljob-*.yaml")
}
