// Package daemonset runs DaemonSets, as a user would have them, on a real control plane with simulated nodes: one cluster and one manager for all
// tests, and for each a namespace and nodes of its own, which it may label and taint.
package daemonset

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
	const nodes = 200
	dir, err := os.MkdirTemp("", "kruise-daemonset-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	if shared.Cluster, err = cluster.Up(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Nodes: nodes}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Down(ctx)) }()
	if shared.manager, err = shared.StartManager(ctx, cluster.ManagerOptions{Dir: filepath.Join(dir, "manager")}); err != nil {
		return 1, err
	}
	defer shared.manager.Stop()
	for i := range nodes {
		shared.free = append(shared.free, fmt.Sprintf("sim-%d", i+1))
	}
	if code = m.Run(); code != 0 {
		fmt.Fprintf(os.Stderr, "the last words of the manager:\n%s\n", shared.manager.Tail(400))
	}
	return code, nil
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

func newEnv(t *testing.T, nodes int) *env {
	t.Helper()
	t.Parallel()
	e := &env{T: t, Cluster: shared.Cluster, ctx: t.Context()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "daemons-"}}
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

// addNode takes one more node into the test's pool, which is for its DaemonSets as if it had just come.
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

func (e *env) taint(name string, effect corev1.TaintEffect) {
	e.Helper()
	e.editNode(name, func(node *corev1.Node) {
		node.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: effect}}
	})
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
	var sets v1beta1.DaemonSetList
	if err := e.Client.List(context.Background(), &sets, client.InNamespace(e.namespace)); err != nil {
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
  %s`, pool, e.namespace, strategy, strings.Join(more, "\n  "))
}

func (e *env) create(text string) *unstructured.Unstructured {
	e.Helper()
	o := &unstructured.Unstructured{}
	e.must(yaml.Unmarshal([]byte(text), &o.Object))
	o.SetNamespace(e.namespace)
	e.must(e.Client.Create(e.ctx, o))
	return o
}

func (e *env) set() *v1beta1.DaemonSet {
	e.Helper()
	set := &v1beta1.DaemonSet{}
	e.must(e.Client.Get(e.ctx, client.ObjectKey{Namespace: e.namespace, Name: "agent"}, set))
	return set
}

// edit changes the DaemonSet as a user would, in v1beta1.
func (e *env) edit(changes ...func(*v1beta1.DaemonSet)) {
	e.Helper()
	e.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set := e.set()
		for _, change := range changes {
			change(set)
		}
		return e.Client.Update(e.ctx, set)
	}))
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
	var list corev1.PodList
	e.must(e.Client.List(context.Background(), &list, client.InNamespace(e.namespace)))
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(nodeOf(&a)+a.Name, nodeOf(&b)+b.Name) })
	return list.Items
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

// nodeOf returns the node that the Pod is pinned to.
func nodeOf(p *corev1.Pod) string {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
	}
	return p.Spec.NodeName
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// settled waits until the DaemonSet has seen its spec, and all wanted nodes have an available Pod, so many of them updated, and no other.
func (e *env) settled(desired, updated int) *v1beta1.DaemonSet {
	e.Helper()
	var set *v1beta1.DaemonSet
	e.eventually(fmt.Sprintf("%d nodes have an available Pod, %d of them updated", desired, updated), func() error {
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
func (e *env) last(n int) []string { return e.nodes[len(e.nodes)-n:] }

func (e *env) same(what string, want, got []string) {
	e.Helper()
	if !slices.Equal(want, got) {
		e.Errorf("%s: %v, want %v\n%s", what, got, want, e.describe())
	}
}
