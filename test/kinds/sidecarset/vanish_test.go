package sidecarset

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestPodsThatVanishUnderTheUpdate deletes, twenty times, a Pod in the very moment in which its update may be under way, and creates one of the same
// name. The rollout must never stand still for that.
func TestPodsThatVanishUnderTheUpdate(t *testing.T) {
	const pods, rounds, limit = 3, 20, 30 * time.Second
	e := newEnv(t)
	e.newLog("{maxUnavailable: 1}")
	e.newPods(pods)
	e.counts(pods, pods, pods, pods)
	for round := range rounds {
		set := e.set()
		changed := set.DeepCopy()
		changed.Spec.Containers[0].Image = fmt.Sprintf("log:%d", round+2)
		e.Must(e.Patch(e.Ctx, changed, client.MergeFrom(set)))
		began := time.Now()
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		// The first in the order of updates, which all have at equal rank by their names.
		victim := fmt.Sprintf("web-%d", round%pods)
		e.Must(e.Delete(e.Ctx, e.pod(victim), client.GracePeriodSeconds(0)))
		e.Must(e.Create(e.Ctx, webPod(e.Namespace, victim)))
		e.Eventually("all Pods have the image", func() error {
			if generation := e.set().Status.ObservedGeneration; generation < changed.Generation {
				return fmt.Errorf("the status is of generation %d", generation)
			}
			return e.countsAre(pods, pods, pods, pods)
		})
		if took := time.Since(began); took > limit {
			t.Errorf("round %d took %v", round, took)
		}
	}
	e.updatedTo(fmt.Sprintf("log:%d", rounds+1))
}

// updatedTo checks that all Pods have the image, and that the SidecarSet says why nothing more is done.
func (e *env) updatedTo(image string) {
	e.Helper()
	for _, p := range e.pods() {
		if got := imageOf(p, "log"); got != image {
			e.Errorf("%s has %s, want %s", p.Name, got, image)
		}
	}
	e.Eventually("the SidecarSet says that all is done", func() error {
		if c := e.set().Status.Conditions[0]; c.Reason != v1beta1.SidecarSetUpdated {
			return fmt.Errorf("it says %s: %s", c.Reason, c.Message)
		}
		return nil
	})
}
