package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestManySidecarSetsAtTheSameTime has users write SidecarSets at the same moment, more of them than a write is tried: none is refused,
// and the Pods
// of all are sent.
func TestManySidecarSetsAtTheSameTime(t *testing.T) {
	const sets = 4 * admitTries
	w := newWorld(t)
	// As long as a request takes at least.
	w.between = func() { time.Sleep(time.Millisecond) }
	problems := make([]error, sets)
	var running sync.WaitGroup
	for n := range sets {
		running.Go(func() {
			problems[n] = w.leader.Admit(context.Background(), nil, setOf(fmt.Sprint("agent-", n), fmt.Sprint("app-", n)))
		})
	}
	running.Wait()
	w.must(errors.Join(problems...))
	for n := range sets {
		if sent := w.sent(podOf(fmt.Sprint("app-", n)), "default", nil); len(sent) != 1 {
			t.Errorf("Pods of SidecarSet agent-%d are sent to %v", n, sent)
		}
	}
}
