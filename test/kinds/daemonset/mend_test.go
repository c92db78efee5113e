package daemonset

import (
	"fmt"
	"testing"
)

// TestABrokenRolloutIsMended: a version that never gets ready stops at the budget, and the one that mends it does not wait for the broken Pods,
// nor takes a healthy one away while they are not well again.
func TestABrokenRolloutIsMended(t *testing.T) {
	for name, way := range map[string]string{"replaced": "Standard", "in place": "InPlaceIfPossible"} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, 6)
			e.Make(e.manifest(fmt.Sprintf("{rollingUpdateType: %s, maxUnavailable: 2}", way)))
			e.settled(6, 6)
			r := e.watch()
			e.edit(image("nginx:1.28-never-ready"))
			e.Eventually("the rollout is stuck at its budget", func() error {
				if s := e.set().Status; s.NumberAvailable != 4 || s.UpdatedNumberScheduled != 2 {
					return fmt.Errorf("%d nodes are available, %d updated", s.NumberAvailable, s.UpdatedNumberScheduled)
				}
				return nil
			})
			e.same("broken nodes", e.last(2), e.updatedNodes("nginx:1.28-never-ready"))
			e.edit(image("nginx:1.29"))
			e.settled(6, 6)
			r.most(e, 2, 0)
		})
	}
}
