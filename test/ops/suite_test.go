// Package ops asks for what daemons do on nodes, as users would, on a real API server with a real manager and a real daemon; only the node is played,
// so that it can be made to fail.
package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/test/cluster"
	"github.com/seed-69ecc383/kruise/test/fakenode"
)

// patience is how long a test waits for what has to happen.
const patience = 30 * time.Second

// site is the cluster of all tests.
type site struct {
	*cluster.Cluster
	dir string
}

var shared site // TestMain fills it in

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if shared.dir, err = os.MkdirTemp("", "kruise-ops-"); err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(shared.dir) }()
	ctx := context.Background()
	if shared.Cluster, err = cluster.Up(ctx, cluster.Options{Dir: filepath.Join(shared.dir, "cluster"), Bare: true}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Down(ctx)) }()
	manager, err := shared.StartManager(ctx, cluster.ManagerOptions{
		Dir: filepath.Join(shared.dir, "manager"), Args: []string{"--feature-gates=EnablePodProbeMarkerOnServerless=true"},
	})
	if err != nil {
		return 1, err
	}
	defer manager.Stop()
	if code = m.Run(); code != 0 {
		fmt.Fprintf(os.Stderr, "the last words of the manager:\n%s\n", manager.Tail(100))
	}
	return code, nil
}

// env is a namespace and a node of its own with its daemon, for one test.
type env struct {
	*testing.T
	client    client.Client
	ctx       context.Context
	namespace string
	node      *fakenode.Node
	socket    string
	daemon    *exec.Cmd
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	e := &env{T: t, client: shared.Client, ctx: ctx}
	t.Cleanup(cancel)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ops-"}}
	e.must(e.client.Create(ctx, namespace))
	e.namespace = namespace.Name
	// Nobody else makes it on a bare API server.
	e.must(e.client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "default"}}))
	e.socket = filepath.Join(shared.dir, e.namespace, "containerd.sock")
	runtime, err := fakenode.Serve(ctx, e.socket)
	e.must(err)
	e.node, err = fakenode.NewNode(ctx, e.client, runtime, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + e.namespace}})
	e.must(err)
	e.must(shared.DaemonKubeconfig(ctx, e.node.Name, e.kubeconfig()))
	e.startDaemon()
	t.Cleanup(func() {
		e.killDaemon()
		if t.Failed() {
			text, _ := os.ReadFile(e.log())
			t.Logf("the daemon said:\n%s", text)
		}
	})
	return e
}

// kubeconfig is that of the daemon, which has the rights that it has in every cluster.
func (e *env) kubeconfig() string { return e.socket + ".kubeconfig" }

func (e *env) log() string { return e.socket + ".log" }

// startDaemon starts the daemon of the test's node.
func (e *env) startDaemon() {
	e.Helper()
	binary, err := cluster.Binary("kruise-daemon")
	e.must(err)
	log, err := os.OpenFile(e.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	e.must(err)
	defer func() { _ = log.Close() }() // the child has its own copy
	e.daemon = exec.Command(binary, "--kubeconfig", e.kubeconfig(), "--socket-file", e.socket, "--addr", "127.0.0.1:0")
	e.daemon.Env = append(os.Environ(), "NODE_NAME="+e.node.Name)
	e.daemon.Stdout, e.daemon.Stderr = log, log
	e.daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e.must(e.daemon.Start())
}

// killDaemon ends the daemon as a crash would.
func (e *env) killDaemon() {
	if e.daemon != nil {
		_ = e.daemon.Process.Kill() // an error means that it has ended
		_ = e.daemon.Wait()         // of a signal
		e.daemon = nil
	}
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// eventually waits until check has nothing to complain about.
func (e *env) eventually(what string, check func() error) {
	e.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	e.Fatalf("waiting until %s: %v", what, err)
}

// parse reads an object of the test's namespace.
func parse[T any, P interface {
	*T
	client.Object
}](e *env, text string) P {
	e.Helper()
	object := P(new(T))
	e.must(yaml.UnmarshalStrict([]byte(text), object))
	object.SetNamespace(e.namespace)
	return object
}

// runPod runs a Pod with the given containers on the test's node, and waits until it is ready.
func (e *env) runPod(name string, change func(*corev1.Pod), containers ...string) *corev1.Pod {
	e.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name, Labels: map[string]string{"app": name}}}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.KruisePodReady}}
	for _, container := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: container, Image: "image"})
	}
	if change != nil {
		change(p)
	}
	e.must(e.node.Run(e.ctx, p, 300*time.Millisecond))
	if len(p.Spec.ReadinessGates) > 0 {
		before := p.DeepCopy()
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: pub.KruisePodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
		e.must(e.client.Status().Patch(e.ctx, p, client.StrategicMergeFrom(before)))
	}
	e.eventually("the Pod is ready", func() error { return e.condition(p, corev1.PodReady, corev1.ConditionTrue) })
	return p
}

// condition reads the Pod, and complains when a condition is not what it should be.
func (e *env) condition(p *corev1.Pod, kind corev1.PodConditionType, want corev1.ConditionStatus) error {
	if err := e.client.Get(e.ctx, client.ObjectKeyFromObject(p), p); err != nil {
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
	root, err := cluster.Root()
	e.must(err)
	text, err := os.ReadFile(filepath.Join(root, "examples", name))
	e.must(err)
	return string(text)
}

func objectMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
