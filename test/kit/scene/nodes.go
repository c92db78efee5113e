package scene

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Pool is the label by which a test's nodes are known: its value is the test's namespace.
const Pool = "test-pool"

// pool holds the nodes of a site that no test has had.
type pool struct {
	mu   sync.Mutex
	free []string
}

func (p *pool) fill(nodes int) {
	for i := range nodes {
		p.free = append(p.free, fmt.Sprintf("sim-%d", i+1))
	}
}

// take returns a node that nobody has had; none is given back, since tests taint and label theirs.
func (p *pool) take() (name string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return "", false
	}
	name, p.free = p.free[0], p.free[1:]
	return name, true
}

// AddNode gives the test one more node of its own, and returns its name: with the label Pool, by which its workloads choose it as if it
// had just come.
func (e *Env) AddNode() string {
	e.Helper()
	name, ok := e.Site.nodes.take()
	if !ok {
		e.Fatal("there are not enough nodes for all tests")
	}
	e.EditNode(name, func(node *corev1.Node) { node.Labels[Pool] = e.Namespace })
	e.Nodes = append(e.Nodes, name)
	slices.Sort(e.Nodes)
	return name
}

// EditNode changes a node.
func (e *Env) EditNode(name string, change func(*corev1.Node)) {
	e.Helper()
	Edit(e, name, &corev1.Node{}, change)
}
