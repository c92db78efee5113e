package daemonset

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestNodesAreUpdatedFromTheLastOneDown: with two at a time, no node is more than one place before or after its turn.
func TestNodesAreUpdatedFromTheLastOneDown(t *testing.T) {
	e := newEnv(t, 10)
	e.Make(e.manifest("{maxUnavailable: 2}"))
	e.settled(10, 10)
	r := e.watch()
	e.edit(image("nginx:1.28"))
	e.settled(10, 10)
	r.most(e, 2, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	want := slices.Clone(e.Nodes)
	slices.Reverse(want)
	for i, node := range r.order {
		if turn := slices.Index(want, node); turn < i-1 || turn > i+1 {
			t.Errorf("nodes were updated in the order %v, want about %v", r.order, want)
			break
		}
	}
}

// TestYoungPodsAreNoFreePrey changes the template twice while every Pod is ready and none is available yet, because of a minReadySeconds that is
// longer than the test: a Pod that serves needs its place in the budget.
func TestYoungPodsAreNoFreePrey(t *testing.T) {
	e := newEnv(t, 10)
	e.Make(e.manifest("{maxUnavailable: 1}", "minReadySeconds: 60"))
	e.Eventually("all are ready", func() error {
		if s := e.set().Status; s.NumberReady != 10 || s.NumberAvailable != 0 {
			return fmt.Errorf("%d are ready, %d available", s.NumberReady, s.NumberAvailable)
		}
		return nil
	})
	r := e.watch()
	for _, next := range []string{"nginx:1.28", "nginx:1.29"} {
		e.edit(image(next))
		e.Always(3*time.Second, "all nodes but one have a ready Pod", func() error {
			if s := e.set().Status; s.NumberReady < 9 {
				return fmt.Errorf("%d have", s.NumberReady)
			}
			return nil
		})
	}
	e.edit(func(set *v1beta1.DaemonSet) { set.Spec.MinReadySeconds = 0 })
	e.settled(10, 10)
	e.same("updated nodes", e.Nodes, e.updatedNodes("nginx:1.29"))
	r.most(e, 1, 0)
}

// crash has the container of a Pod end again and again.
func (e *env) crash(p *corev1.Pod) {
	e.Helper()
	before := p.DeepCopy()
	p.Annotations = map[string]string{"sim.kruise.io/run-for": "100ms", "sim.kruise.io/exit-code": "1", "sim.kruise.io/kill": "app/1"}
	e.Must(e.Client.Patch(e.Ctx, p, mergeFrom(before)))
}

// TestCrashingPodsAreReplacedFirst has three of ten nodes' Pods crash before the template changes that mends them, with a budget of two: the three
// are replaced although more nodes are down than the budget allows, and no healthy one before there is room for it.
func TestCrashingPodsAreReplacedFirst(t *testing.T) {
	e := newEnv(t, 10)
	e.Make(e.manifest("{maxUnavailable: 2}"))
	e.settled(10, 10)
	var broken []string
	for _, node := range []string{e.Nodes[1], e.Nodes[4], e.Nodes[8]} {
		broken = append(broken, node)
		e.crash(e.podOn(node))
	}
	crashing := func() error {
		for _, node := range broken {
			p := e.podOn(node)
			if s := p.Status.ContainerStatuses[0]; scene.IsReady(p) || s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" {
				return fmt.Errorf("%s is %+v", p.Name, s.State)
			}
		}
		return nil
	}
	e.Eventually("three are down for a while", crashing)
	r := e.watch()
	e.edit(image("nginx:1.28"))
	e.settled(10, 10)
	r.most(e, 3, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	first := slices.Sorted(slices.Values(r.order[:3]))
	slices.Sort(broken)
	e.same("first updated nodes", broken, first)
}

// TestNodesThatAreLeftDoNotCount narrows the selection of nodes while three of those that drop out are dead, which alone would use the budget up.
func TestNodesThatAreLeftDoNotCount(t *testing.T) {
	e := newEnv(t, 10)
	const tier = "test-tier"
	kept, dropped := e.Nodes[:6], e.Nodes[6:]
	for _, node := range kept {
		e.EditNode(node, func(n *corev1.Node) { n.Labels[tier] = "kept" })
	}
	e.Make(e.tolerant("{maxUnavailable: 2}"))
	e.settled(10, 10)
	for _, node := range dropped[:3] {
		e.EditNode(node, func(n *corev1.Node) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, "sim.kruise.io/stopped", "true") })
	}
	e.Eventually("three nodes are dead", func() error {
		if s := e.set().Status; s.DesiredNumberScheduled != 10 || s.NumberReady != 7 {
			return fmt.Errorf("%d of %d have a ready Pod", s.NumberReady, s.DesiredNumberScheduled)
		}
		return nil
	})
	r := e.watch()
	e.edit(image("nginx:1.28"), func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.NodeSelector[tier] = "kept" })
	e.Eventually("the six that are left are updated", func() error {
		set := e.set()
		if s := set.Status; s.ObservedGeneration != set.Generation || s.DesiredNumberScheduled != 6 || s.UpdatedNumberScheduled != 6 || s.NumberAvailable != 6 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	e.same("updated nodes", kept, e.updatedNodes("nginx:1.28"))
	r.mu.Lock()
	// The four that drop out are down on purpose.
	if r.down > len(dropped)+2 {
		t.Errorf("%d nodes were without a ready Pod at a time, want %d at most", r.down, len(dropped)+2)
	}
	r.mu.Unlock()
	e.Eventually("the dropped nodes' Pods are told to go", func() error {
		for _, p := range e.pods() {
			if slices.Contains(dropped, nodeOf(&p)) {
				return fmt.Errorf("%s is there", p.Name)
			}
		}
		return nil
	})
}
