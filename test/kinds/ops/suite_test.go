// Package ops asks for what daemons do on nodes, as users would, on a real API server with a real manager and a real daemon; only the node is played,
// so that it can be made to fail.
package ops

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/fakenode"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// shared is the cluster of all tests, with no node but those that are played.
var shared = &scene.Site{
	Name: "ops", Options: cluster.Options{Bare: true}, Args: []string{"--feature-gates=EnablePodProbeMarkerOnServerless=true"},
}

func TestMain(m *testing.M) { scene.Main(m, shared) }

// env is a namespace and a node of its own with its daemon, for one test.
type env struct {
	*scene.Env
	node   *fakenode.Node
	socket string
	daemon *cluster.Daemon
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	at := shared.Enter(t)
	var cancel context.CancelFunc
	at.Ctx, cancel = context.WithTimeout(context.Background(), 3*time.Minute) // the node plays on until the daemon has ended
	t.Cleanup(cancel)
	e := &env{Env: at}
	e.socket = filepath.Join(shared.Dir, e.Namespace, "containerd.sock")
	runtime, err := fakenode.Serve(e.Ctx, e.socket)
	e.Must(err)
	e.node, err = fakenode.NewNode(e.Ctx, e.Client, runtime, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + e.Namespace}})
	e.Must(err)
	e.startDaemon()
	t.Cleanup(func() {
		e.killDaemon()
		if t.Failed() {
			t.Logf("the daemon said:\n%s", e.daemon.Tail(1000))
		}
	})
	return e
}

// startDaemon starts the daemon of the test's node, which has the rights that it has in every cluster.
func (e *env) startDaemon() {
	e.Helper()
	var err error
	e.daemon, err = e.StartDaemon(e.Ctx, cluster.DaemonOptions{Node: e.node.Name, Socket: e.socket, Dir: filepath.Dir(e.socket)})
	e.Must(err)
}

// killDaemon ends the daemon as a crash would.
func (e *env) killDaemon() { e.daemon.Kill() }

// parse reads an object of the test's namespace.
func parse[T any, P interface {
	*T
	client.Object
}](e *env, text string) P {
	e.Helper()
	return scene.Parse(e.Env, P(new(T)), text)
}

// runPod runs a Pod with the given containers on the test's node, and waits until it is ready.
func (e *env) runPod(name string, change func(*corev1.Pod), containers ...string) *corev1.Pod {
	e.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name, Labels: map[string]string{"app": name}}}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.KruisePodReady}}
	for _, container := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: container, Image: "image"})
	}
	if change != nil {
		change(p)
	}
	e.Must(e.node.Run(e.Ctx, p, 300*time.Millisecond))
	if len(p.Spec.ReadinessGates) > 0 {
		before := p.DeepCopy()
		p.Status.Conditions = append(
			p.Status.Conditions,
			corev1.PodCondition{Type: pub.KruisePodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		)
		e.Must(e.Client.Status().Patch(e.Ctx, p, client.StrategicMergeFrom(before)))
	}
	e.Eventually("the Pod is ready", func() error { return e.condition(p, corev1.PodReady, corev1.ConditionTrue) })
	return p
}

// condition reads the Pod, and complains when a condition is not what it should be.
func (e *env) condition(p *corev1.Pod, kind corev1.PodConditionType, want corev1.ConditionStatus) error {
	if err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	for _, c := range p.Status.Conditions {
		if c.Type == kind && c.Status == want {
			return nil
		}
	}
	return fmt.Errorf("condition %s is not %s: %v", kind, want, p.Status.Conditions)
}

// example reads one of the examples.
func (e *env) example(name string) string {
	e.Helper()
	return e.Examples(name)[name]
}

func objectMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
