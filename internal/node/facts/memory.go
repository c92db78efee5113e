package facts

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory keeps the facts of containers by the Pods that they are of. It is made anew with each life of the daemon.
type memory struct {
	mu     sync.Mutex
	facts  map[types.NamespacedName]map[string]Fact
	failed map[string]int
}

func newMemory() *memory {
	return &memory{facts: map[types.NamespacedName]map[string]Fact{}, failed: map[string]int{}}
}

// recall returns what is known of a Pod's containers, and forgets those that it does not have any more.
func (m *memory) recall(pod types.NamespacedName, ids []string) map[string]Fact {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]Fact{}
	for id, fact := range m.facts[pod] {
		if slices.Contains(ids, id) {
			out[id] = fact
			continue
		}
		delete(m.facts[pod], id)
		delete(m.failed, id)
	}
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

// fail counts the failed tries to learn of a container.
func (m *memory) fail(id string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed[id]++
	return m.failed[id]
}

func (m *memory) forget(pod types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.facts[pod] {
		delete(m.failed, id)
	}
	delete(m.facts, pod)
}
