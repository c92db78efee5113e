package probe

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

const (
	// maxRuns is the number of probes that run at the same time, and maxRunsOfNamespace that of one namespace.
	maxRuns, maxRunsOfNamespace = 128, 32
)

// turns limits how many probes run at the same time. A namespace of which no probe runs never waits: so probes that hang, or are too many,
// delay those of their own namespace only. When a probe has ended, the next one is of the namespace of which the fewest run.
type turns struct {
	mu      sync.Mutex
	total   int
	running map[string]int
	// waiting holds what wakes each probe that waits, by namespace, the first to wait first.
	waiting map[string][]chan struct{}
}

func newTurns() *turns {
	return &turns{running: map[string]int{}, waiting: map[string][]chan struct{}{}}
}

// begin waits until a probe of a namespace may run. It reports false if the context ends before that.
func (t *turns) begin(ctx context.Context, namespace string) bool {
	t.mu.Lock()
	if t.mayRun(namespace) && len(t.waiting[namespace]) == 0 {
		t.count(namespace, 1)
		t.mu.Unlock()
		return true
	}
	woken := make(chan struct{})
	t.waiting[namespace] = append(t.waiting[namespace], woken)
	t.mu.Unlock()
	select {
	case <-woken:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting[namespace], woken); i >= 0 {
		t.remove(namespace, i)
		return false
	}
	t.count(namespace, -1) // it was woken at the same time
	t.wake()
	return false
}

// end ends the run of a probe that has begun.
func (t *turns) end(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(namespace, -1)
	t.wake()
}

func (t *turns) mayRun(namespace string) bool {
	n := t.running[namespace]
	return n == 0 || n < maxRunsOfNamespace && t.total < maxRuns
}

func (t *turns) count(namespace string, by int) {
	t.total += by
	if t.running[namespace] += by; t.running[namespace] == 0 {
		delete(t.running, namespace)
	}
}

// remove removes a probe from those of its namespace that wait.
func (t *turns) remove(namespace string, i int) {
	if t.waiting[namespace] = slices.Delete(t.waiting[namespace], i, i+1); len(t.waiting[namespace]) == 0 {
		delete(t.waiting, namespace)
	}
}

// wake lets those run that may.
func (t *turns) wake() {
	for {
		var may []string
		for namespace := range t.waiting {
			if t.mayRun(namespace) {
				may = append(may, namespace)
			}
		}
		if len(may) == 0 {
			return
		}
		next := slices.MinFunc(may, func(a, b string) int { return cmp.Or(t.running[a]-t.running[b], cmp.Compare(a, b)) })
		woken := t.waiting[next][0]
		t.remove(next, 0)
		t.count(next, 1)
		close(woken)
	}
}
