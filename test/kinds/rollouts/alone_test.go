package rollouts

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// alone is a cluster with nothing but Rollouts.
var alone = &scene.Site{
	Name: "alone", Options: cluster.Options{Nodes: 2}, Kruise: scene.None,
	Rollouts: []string{"--leader-elect=false", "--feature-gates=KeepWorkloadPausedOnRolloutDeletion=true"},
}

// TestAlone: Rollouts run where no other kind of Kruise is installed, and release CloneSets as soon as there are any.
func TestAlone(t *testing.T) {
	takePlace(t)
	e := enter(t, alone)
	e.start(fmt.Sprintf(statefulSet, 3), rolloutOf(ofStatefulSet, steps("1", "100%")))
	edit(e, "web", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "web:v2" })
	e.paused(1, "v2", 1)
	e.approve()
	e.Eventually("the release is over", func() error {
		if phase := e.rollout().Status.Phase; phase != v1beta1.RolloutPhaseHealthy {
			return fmt.Errorf("phase %s", phase)
		}
		return e.ready("v2", 3)
	})

	e = &env{e.In(e.NewNamespace(nil))}
	e.Describe = e.describe
	e.Make(rolloutOf(ofCloneSet, steps("1", "100%")))
	e.Eventually("a Rollout of a kind that is not there waits", func() error {
		if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseInitial || r.Status.Message == "" {
			return fmt.Errorf("phase %s: %s", r.Status.Phase, r.Status.Message)
		}
		return nil
	})
	manager, err := alone.StartManager(e.Ctx, cluster.ManagerOptions{Dir: alone.Dir + "/kruise", Args: []string{"--enable-leader-election=false"}})
	e.Must(err)
	t.Cleanup(manager.Stop)
	e.Make(fmt.Sprintf(cloneSet, 3, ""))
	e.Eventually("the Rollout has found its CloneSet", func() error {
		return errors.Join(e.ready("v1", 3), e.isAt(2, v1beta1.StepStateCompleted))
	})
	e.setImage("v2")
	e.paused(1, "v2", 1)
}
