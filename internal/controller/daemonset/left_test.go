package daemonset

import (
	"testing"

	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
)

// TestPodsThatWereLeftBehindAreNotMissing has a user delete the DaemonSet again and again such that its Pods stay, and create it anew, while caches
// tell of all that in any order: the Pods are taken over, and no node gets another one beside.
func TestPodsThatWereLeftBehindAreNotMissing(t *testing.T) {
	s := suite(Plan)
	s.Populate = func(w *promises.World) promises.Scenario {
		s := newScenario(w)
		return promises.Scenario{
			Start: starter(w, s.options(), Plan),
			Act: func() {
				switch set := s.set(); {
				case set == nil:
					s.create()
				case set.DeletionTimestamp == nil:
					s.Cluster.Orphan(promises.UserActor, set)
				}
			},
			Relent: s.relent, Others: []func() bool{s.AnswerHooks}, Check: check,
			Converged: func() []string { return invariant.DaemonsConverged(w.Cluster, s.set()) },
		}
	}
	s.Hold(t)
}
