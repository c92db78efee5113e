// Package inject runs the whole product on a real control plane with simulated nodes, and checks what becomes of new Pods: the sidecars that they
// get, and the order in which their containers start. One cluster and one manager for all tests, a namespace for each.
package inject

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/test/cluster"
)

// shared is the cluster that TestMain brings up; tests only read it.
var shared *cluster.Cluster

// manager is the manager of the cluster, and managerOptions are what it is started with. Only a test that runs alone may replace it.
var (
	manager        *cluster.Manager
	managerOptions cluster.ManagerOptions
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "kruise-inject-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	shared, err = cluster.Up(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Nodes: 3, Args: []string{"--owner", fmt.Sprint(os.Getpid())}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Down(context.WithoutCancel(ctx))) }()
	managerOptions = cluster.ManagerOptions{Dir: filepath.Join(dir, "manager"), Args: []string{
		"--feature-gates=SidecarTerminator=true", "--v=1",
		// One process at a time needs no election, and a killed leader's Lease would only make the next one wait.
		"--enable-leader-election=false",
	}}
	if manager, err = shared.StartManager(ctx, managerOptions); err != nil {
		return 1, err
	}
	defer func() { manager.Stop() }()
	code = m.Run()
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the manager's last words:\n%s\n", manager.Tail(30))
	}
	return code, nil
}

// patience is how long a test waits for what has to happen; on a busy machine a few hundred milliseconds can become many seconds.
const patience = 90 * time.Second

// env is a namespace of the shared cluster, for one test.
type env struct {
	*testing.T
	client.Client
	ctx       context.Context
	namespace string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return sequential(t)
}

// sequential is for a test that others must not run beside.
func sequential(t *testing.T) *env {
	t.Helper()
	e := &env{T: t, Client: shared.Client, ctx: t.Context()}
	e.namespace = e.newNamespace(nil)
	return e
}

func (e *env) newNamespace(labels map[string]string) string {
	e.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "inject-", Labels: labels}}
	e.must(e.Create(e.ctx, namespace))
	e.Cleanup(func() {
		// The test's own context has ended by now.
		if err := shared.Client.Delete(context.Background(), namespace); err != nil {
			e.Logf("deleting namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
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
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			e.Fatalf("waiting until %s: %v\n%s", what, err, e.describe())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// never checks for a while that something does not happen.
func (e *env) never(what string, happens func() bool) {
	e.Helper()
	const aWhile = 2 * time.Second
	for deadline := time.Now().Add(aWhile); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if happens() {
			e.Fatalf("it happened that %s\n%s", what, e.describe())
		}
	}
}

func (e *env) describe() string {
	var out strings.Builder
	var pods corev1.PodList
	if err := e.List(context.WithoutCancel(e.ctx), &pods, client.InNamespace(e.namespace)); err != nil {
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

// parse reads a manifest into an object of this namespace.
func parse[T client.Object](e *env, into T, text string) T {
	e.Helper()
	e.must(yaml.UnmarshalStrict([]byte(text), into))
	into.SetNamespace(e.namespace)
	return into
}

// newPod creates a Pod from a manifest.
func (e *env) newPod(text string, options ...client.CreateOption) *corev1.Pod {
	e.Helper()
	p, err := e.tryPod(text, options...)
	e.must(err)
	return p
}

func (e *env) tryPod(text string, options ...client.CreateOption) (*corev1.Pod, error) {
	e.Helper()
	p := parse(e, &corev1.Pod{}, text)
	return p, e.Create(e.ctx, p, options...)
}

func (e *env) pod(name string) *corev1.Pod {
	e.Helper()
	p := &corev1.Pod{}
	e.must(e.Get(e.ctx, client.ObjectKey{Namespace: e.namespace, Name: name}, p))
	return p
}

// delete deletes an object of this namespace.
func (e *env) delete(object client.Object, options ...client.DeleteOption) {
	e.Helper()
	e.must(e.Delete(e.ctx, object, options...))
}

// apply creates an object of any kind from a manifest.
func (e *env) apply(text string) *unstructured.Unstructured {
	e.Helper()
	o := &unstructured.Unstructured{}
	e.must(yaml.Unmarshal([]byte(text), &o.Object))
	o.SetNamespace(e.namespace)
	e.must(e.Create(e.ctx, o))
	return o
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// events returns the reasons of the events about an object of this namespace.
func (e *env) events(name string) []string {
	e.Helper()
	var list corev1.EventList
	e.must(e.List(e.ctx, &list, client.InNamespace(e.namespace)))
	var reasons []string
	for _, event := range list.Items {
		if event.InvolvedObject.Name == name {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}

// afterwards returns a context for what is done when the test's own has ended.
func (e *env) afterwards() context.Context { return context.WithoutCancel(e.ctx) }
