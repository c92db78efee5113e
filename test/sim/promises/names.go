package promises

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// RenewNames checks that no Pod has the name of one before it: whoever waits for a name to be gone would wait for ever. One that takes over
// the claims of another takes over its name, too.
func (s Suite) RenewNames(t *testing.T) {
	t.Helper()
	ctx := logr.NewContext(t.Context(), logr.Discard())
	for seed := range int64(60) {
		w := s.World(seed)
		w.Rig.Turmoil(ctx, 0)
		w.scenario.Relent()
		for range 5 {
			w.settle(ctx, "")
			for _, p := range (User{Cluster: w.Cluster}).Pods() {
				w.Cluster.Delete(UserActor, p)
			}
		}
		w.settle(ctx, "")
		for _, problem := range w.problems {
			t.Errorf("seed %d: %s", seed, problem)
		}
		created := map[string]bool{}
		for _, c := range w.Cluster.History() {
			p, isPod := c.After.(*corev1.Pod)
			if !isPod || c.Before != nil || slices.ContainsFunc(p.Spec.Volumes, isClaim) {
				continue
			}
			if created[c.Key.Name] {
				t.Fatalf("seed %d: revision %d: there was a Pod %s before\n%s", seed, c.Revision, c.Key.Name, w.Story())
			}
			created[c.Key.Name] = true
		}
	}
}

func isClaim(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil }
