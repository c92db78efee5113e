package cloneset

import (
	"testing"

	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// leaving is a user who deletes the CloneSet again and again such that its Pods stay, and creates it anew.
func leaving() promises.Suite {
	s := suite(Plan)
	s.Populate = func(w *promises.World) promises.Scenario {
		s := newScenario(w)
		options := s.options()
		return promises.Scenario{
			Start: func(c promises.Connection) simulate.Process { return start(c, options, pure(Plan).In(w)) },
			Act: func() {
				switch set := s.set(); {
				case set == nil:
					s.create()
				case set.DeletionTimestamp == nil:
					s.Cluster.Orphan(promises.UserActor, set)
				}
			},
			Relent: s.relent, Others: []func() bool{s.AnswerHooks}, Check: check,
			Converged: func() []string { return invariant.Converged(w.Cluster, s.set()) },
		}
	}
	return s
}

// TestPodsThatWereLeftBehindAreNotMissing has the cache of Pods tell that nobody controls them any more before that of CloneSets tells of the deletion.
func TestPodsThatWereLeftBehindAreNotMissing(t *testing.T) {
	leaving().Hold(t)
	t.Run("nobody asks whether the CloneSet is there", func(t *testing.T) {
		s := leaving()
		s.Mistake.GlancesAtCache = true
		s.Break(t, invariant.RuleLeft)
	})
}
