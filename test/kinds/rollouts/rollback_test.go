package rollouts

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// TestScenario19RollbackInBatches: with the annotation, the way back follows the steps, of a CloneSet whose Pods are made anew and of one
// whose Pods are updated in place, which keep the labels of the release before.
func TestScenario19RollbackInBatches(t *testing.T) {
	for name, manifest := range map[string]string{
		"Pods are made anew":          fmt.Sprintf(cloneSet, 20, ""),
		"Pods are updated in place":   fmt.Sprintf(cloneSet, 20, "") + "  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}\n",
		"Pods of an ordered workload": fmt.Sprintf(statefulSet, 20),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			of, setImage := ofCloneSet, e.setImage
			if name == "Pods of an ordered workload" {
				of, setImage = ofStatefulSet, e.setImageOfStatefulSet
			}
			e.start(manifest, rolloutOf(of, steps("20%", "50%", "100%")))
			e.change(func(r *v1beta1.Rollout) { r.Annotations = map[string]string{keys.RollbackInBatch: "true"} })
			setImage("v2")
			e.paused(1, "v2", 4)
			e.approve()
			e.paused(2, "v2", 10)
			setImage("v1")
			e.paused(1, "v1", 12)
			e.batchesOfRelease(map[string]int{"1": 4})
			e.approve()
			e.paused(2, "v1", 15)
			e.batchesOfRelease(map[string]int{"1": 4, "2": 6})
			e.approve()
			e.Eventually("the release is over", func() error {
				if r := e.rollout(); r.Status.Phase != v1beta1.RolloutPhaseHealthy {
					return fmt.Errorf("phase %s", r.Status.Phase)
				}
				return e.ready("v1", 20)
			})
			if of == ofCloneSet {
				e.over("v1", 20, corev1.ConditionTrue)
			}
			e.batchesOfRelease(map[string]int{"1": 4, "2": 6, "3": 10})
		})
	}
}

// batchesOfRelease waits until so many live Pods are of each batch of the release that the Rollout names.
func (e *env) batchesOfRelease(want map[string]int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("Pods are of the batches %v", want), func() error {
		id, got := e.rollout().Status.CanaryStatus.ObservedRolloutID, map[string]int{}
		for _, p := range e.Pods() {
			if batch := p.Labels[keys.RolloutBatchID]; batch != "" && p.DeletionTimestamp == nil && p.Labels[keys.RolloutID] == id {
				got[batch]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("release %s (-want +got):\n%s", id, diff)
		}
		return nil
	})
}
