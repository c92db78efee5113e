// Package jobs runs BroadcastJobs and AdvancedCronJobs, as a user would have them, on a real control plane with simulated nodes: one cluster and one
// manager for all tests, and for each a namespace and nodes of its own, which it may label and taint.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/cluster"
)

// patience is how long a test waits for what has to happen; on a busy machine a few hundred milliseconds can become many seconds.
const patience = 2 * time.Minute

// pool is the label by which a test's nodes are known.
const pool = "test-pool"

// site is the cluster of all tests.
type site struct {
	*cluster.Cluster
	manager *cluster.Manager
	dir     string
	mu      sync.Mutex
	free    []string
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
	const nodes = 80
	if shared.dir, err = os.MkdirTemp("", "kruise-jobs-"); err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(shared.dir) }()
	ctx := context.Background()
	if shared.Cluster, err = cluster.Up(ctx, cluster.Options{Dir: filepath.Join(shared.dir, "cluster"), Nodes: nodes}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Down(ctx)) }()
	if shared.manager, err = shared.StartManager(ctx, managerOptions()); err != nil {
		return 1, err
	}
	defer func() { shared.manager.Stop() }()
	for i := range nodes {
		shared.free = append(shared.free, fmt.Sprintf("sim-%d", i+1))
	}
	if code = m.Run(); code != 0 {
		fmt.Fprintf(os.Stderr, "the last words of the manager:\n%s\n", shared.manager.Tail(400))
	}
	return code, nil
}

func managerOptions() cluster.ManagerOptions {
	// The lease of a manager that was killed must not keep the next one waiting.
	return cluster.ManagerOptions{Dir: filepath.Join(shared.dir, "manager"), Args: []string{"--enable-leader-election=false", "--feature-gates=ImagePullJobGate=true"}}
}

// env is a namespace and some nodes, for one test.
type env struct {
	*testing.T
	*cluster.Cluster
	ctx       context.Context
	namespace string
	// nodes are sorted by name.
	nodes []string
}

// restart kills the manager, as a crash would, and starts another one.
func (e *env) restart() {
	e.Helper()
	shared.manager.Kill()
	e.start()
}

// start starts a manager where none is. Nothing is installed anew: that would end the watches of the tests.
func (e *env) start() {
	e.Helper()
	manager, err := shared.LaunchManager(context.Background(), managerOptions())
	e.must(err)
	shared.manager = manager
	e.must(manager.WaitReady(e.ctx))
}

// newEnv returns a namespace and nodes for a test that runs beside others.
func newEnv(t *testing.T, nodes int) *env {
	t.Helper()
	t.Parallel()
	return newLonelyEnv(t, nodes)
}

// newLonelyEnv does the same for a test that runs alone, because it stops the manager.
func newLonelyEnv(t *testing.T, nodes int) *env {
	t.Helper()
	e := &env{T: t, Cluster: shared.Cluster, ctx: t.Context()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "jobs-"}}
	e.must(e.Client.Create(e.ctx, namespace))
	e.namespace = namespace.Name
	for range nodes {
		e.addNode()
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := e.Client.Delete(context.Background(), namespace); err != nil {
			t.Logf("deleting namespace %s: %v", namespace.Name, err)
		}
	})
	return e
}

// addNode takes one more node into the test's pool, which is for its jobs as if it had just come.
func (e *env) addNode() string {
	e.Helper()
	shared.mu.Lock()
	if len(shared.free) == 0 {
		shared.mu.Unlock()
		e.Fatal("there are not enough nodes for all tests")
	}
	name := shared.free[0]
	shared.free = shared.free[1:]
	shared.mu.Unlock()
	e.editNode(name, func(node *corev1.Node) { node.Labels[pool] = e.namespace })
	e.nodes = append(e.nodes, name)
	slices.Sort(e.nodes)
	return name
}

func (e *env) editNode(name string, change func(*corev1.Node)) {
	e.Helper()
	e.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node := &corev1.Node{}
		if err := e.Client.Get(e.ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		change(node)
		return e.Client.Update(e.ctx, node)
	}))
}

func (e *env) taint(name string, taints ...corev1.Taint) {
	e.Helper()
	e.editNode(name, func(node *corev1.Node) { node.Spec.Taints = taints })
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

// always checks again and again for a while that there is nothing to complain about.
func (e *env) always(duration time.Duration, what string, check func() error) {
	e.Helper()
	for deadline := time.Now().Add(duration); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err := check(); err != nil {
			e.Fatalf("%s: %v\n%s", what, err, e.describe())
		}
	}
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
		e.Client.List(context.Background(), &broadcast, client.InNamespace(e.namespace)),
		e.Client.List(context.Background(), &cron, client.InNamespace(e.namespace)),
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
		fmt.Fprintf(&out, "Pod %s for %s on %q %s deleted=%v annotations=%v\n", p.Name, nodeOf(&p), p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, p.Annotations)
	}
	return out.String()
}

func (e *env) create(text string) *unstructured.Unstructured {
	e.Helper()
	o := &unstructured.Unstructured{}
	e.must(yaml.Unmarshal([]byte(text), &o.Object))
	o.SetNamespace(e.namespace)
	e.must(e.Client.Create(e.ctx, o))
	return o
}

// refused returns why an object can't be created.
func (e *env) refused(text string) string {
	e.Helper()
	o := &unstructured.Unstructured{}
	e.must(yaml.Unmarshal([]byte(text), &o.Object))
	o.SetNamespace(e.namespace)
	err := e.Client.Create(e.ctx, o, client.DryRunAll)
	if err == nil {
		e.Errorf("created:\n%s", text)
		return ""
	}
	return err.Error()
}

func (e *env) pods() []corev1.Pod {
	e.Helper()
	var list corev1.PodList
	e.must(e.Client.List(context.Background(), &list, client.InNamespace(e.namespace)))
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(nodeOf(&a)+a.Name, nodeOf(&b)+b.Name) })
	return list.Items
}

// nodeOf returns the node that the Pod is pinned to.
func nodeOf(p *corev1.Pod) string {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
	}
	return p.Spec.NodeName
}

// finish has the container of the Pod on a node exit with a code: simulated nodes start a container anew when its image is changed, and
// heed then what the Pod says of its end.
func (e *env) finish(node string, code int) {
	e.Helper()
	e.eventually("there is a Pod on "+node+" that runs", func() error {
		for _, p := range e.pods() {
			if nodeOf(&p) != node || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
				continue
			}
			before := p.DeepCopy()
			p.Annotations["sim.kruise.io/run-for"] = "0s"
			p.Annotations["sim.kruise.io/exit-code"] = fmt.Sprint(code)
			p.Spec.Containers[0].Image = "busybox:2"
			return e.Client.Patch(e.ctx, &p, client.MergeFrom(before))
		}
		return errors.New("there is none")
	})
}

// events returns how often each reason was emitted for an object.
func (e *env) events(name string) map[string]int {
	e.Helper()
	var list corev1.EventList
	e.must(e.Client.List(e.ctx, &list, client.InNamespace(e.namespace)))
	out := map[string]int{}
	for i := range list.Items {
		if event := &list.Items[i]; event.InvolvedObject.Name == name {
			out[event.Reason] += int(max(1, event.Count))
		}
	}
	return out
}

func TestExamples(t *testing.T) {
	e := newEnv(t, 0)
	root, err := cluster.Root()
	e.must(err)
	for _, kind := range []string{"broadcastjob", "advancedcronjob", "ephemeraljob"} {
		files, err := filepath.Glob(filepath.Join(root, "examples", kind+"-*.yaml"))
		e.must(err)
		if len(files) == 0 {
			t.Fatalf("there are no examples of %s", kind)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			e.must(err)
			o := &unstructured.Unstructured{}
			e.must(yaml.Unmarshal(text, &o.Object))
			o.SetNamespace(e.namespace)
			if err := e.Client.Create(e.ctx, o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
				t.Errorf("creating %s: %v", filepath.Base(file), err)
			}
		}
	}
}
