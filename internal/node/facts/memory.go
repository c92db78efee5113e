package facts

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory keeps the facts of containers by the Pods that they are of. It is made anew with each life of the daemon.
type memory struct {
	mu    sync.Mutex
	facts map[types.NamespacedName]map[string]Fact
	// failed counts the failed tries to learn of a container.
	failed map[types.NamespacedName]map[string]int
}

func newMemory() *memory {
	return &memory{facts: map[types.NamespacedName]map[string]Fact{}, failed: map[types.NamespacedName]map[string]int{}}
}

// recall returns what is known of a Pod's containers, and forgets those that it does not have any more.
func (m *memory) recall(pod types.NamespacedName, ids []string) map[string]Fact {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.facts[pod], func(id string, _ Fact) bool { return !slices.Contains(ids, id) })
	maps.DeleteFunc(m.failed[pod], func(id string, _ int) bool { return !slices.Contains(ids, id) })
	out := map[string]Fact{}
	maps.Copy(out, m.facts[pod])
	return out
}

func (m *memory) keep(pod types.NamespacedName, id string, fact Fact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.facts[pod] == nil {
		m.facts[pod] = map[string]Fact{}
	}
	m.facts[pod][id] = fact
}

// fail notes that a try to learn of a container has failed, and returns how many have.
func (m *memory) fail(pod types.NamespacedName, id string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed[pod] == nil {
		m.failed[pod] = map[string]int{}
	}
	m.failed[pod][id]++
	return m.failed[pod][id]
}

func (m *memory) forget(pod types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.facts, pod)
	delete(m.failed, pod)
}
