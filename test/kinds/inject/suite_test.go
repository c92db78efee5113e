// Package inject runs the whole product on a real control plane with simulated nodes, and checks what becomes of new Pods: the sidecars that they
// get, and the order in which their containers start. One cluster and one manager for all tests, a namespace for each.
package inject

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of all tests.
var shared = &scene.Site{Name: "inject", Options: cluster.Options{Nodes: 3}, Args: []string{
	"--feature-gates=SidecarTerminator=true", "--v=1",
	// One process at a time needs no election, and a killed leader's Lease would only make the next one wait.
	"--enable-leader-election=false",
}}

func TestMain(m *testing.M) { scene.Main(m, shared) }

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
	var pods corev1.PodList
	if err := e.List(context.WithoutCancel(e.Ctx), &pods, client.InNamespace(e.Namespace)); err != nil {
		return err.Error()
	}
	for _, p := range pods.Items {
		fmt.Fprintf(&out, "Pod %s %s deleted=%v annotations=%v\n", p.Name, p.Status.Phase, p.DeletionTimestamp, p.Annotations)
		for _, c := range p.Status.ContainerStatuses {
			fmt.Fprintf(&out, "  %s ready=%t %+v\n", c.Name, c.Ready, c.State)
		}
	}
	return out.String()
}

// in returns the same test in another namespace.
func (e *env) in(namespace string) *env {
	return &env{e.In(namespace)}
}

// newPod creates a Pod from a manifest.
func (e *env) newPod(text string, options ...client.CreateOption) *corev1.Pod {
	e.Helper()
	p, err := e.tryPod(text, options...)
	e.Must(err)
	return p
}

func (e *env) tryPod(text string, options ...client.CreateOption) (*corev1.Pod, error) {
	e.Helper()
	p := scene.Parse(e.Env, &corev1.Pod{}, text)
	return p, e.Create(e.Ctx, p, options...)
}

func (e *env) pod(name string) *corev1.Pod {
	e.Helper()
	p := &corev1.Pod{}
	e.Read(name, p)
	return p
}

// delete deletes an object of this namespace.
func (e *env) delete(object client.Object, options ...client.DeleteOption) {
	e.Helper()
	e.Must(e.Delete(e.Ctx, object, options...))
}

func (e *env) apply(text string) *unstructured.Unstructured {
	e.Helper()
	return e.Make(text)
}
