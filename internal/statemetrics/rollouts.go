package statemetrics

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Rollouts returns the metrics of Rollouts.
func Rollouts() Kind {
	type rollout = *v1beta1.Rollout
	return table[rollout]{
		kind: "Rollout", list: func() client.ObjectList { return &v1beta1.RolloutList{} },
		numbers: []number[rollout]{
			tally("spec_steps", "Steps of a release.", func(r rollout) int {
				steps, _ := stepsOf(r)
				return steps
			}),
			yes("spec_paused", "1 while spec.strategy.paused holds the release, else 0.",
				func(r rollout) bool { return r.Spec.Strategy.Paused }),
			tally("status_current_step", "The step of the release, counted from 1; 0 if there is none.",
				func(r rollout) int32 { return r.Status.CurrentStepIndex }),
			generation(func(r rollout) int64 { return r.Status.ObservedGeneration }),
		},
		conditions: func(r rollout) []condition {
			return conditionsOf(r.Status.Conditions, func(c v1beta1.RolloutCondition) condition {
				return condition{c.Type, string(c.Status), c.Reason, c.LastTransitionTime}
			})
		},
		described: described{
			"info":                          "1, with the workload that the Rollout is of, and its style: canary, partition or blueGreen.",
			"status_phase":                  "1 for the phase that the Rollout is in.",
			"status_step_state":             "1 for the state that the step of the release is in.",
			"status_step_state_seconds":     "How long the step of a release that is under way has been in its state.",
			"status_replicas_updated":       "Pods of the new revision, as the release counts them.",
			"status_replicas_updated_ready": "Pods of the new revision that are ready.",
		},
		more: func(to *record, r rollout) {
			_, style := stepsOf(r)
			to.put("info", 1, r.Spec.WorkloadRef.Kind, r.Spec.WorkloadRef.Name, style)
			to.phase(string(r.Status.Phase))
			to.release(&r.Status)
		},
	}.Kind()
}

// release adds what the status says of the release.
func (r *record) release(s *v1beta1.RolloutStatus) {
	common := (*v1beta1.CommonStatus)(nil)
	switch {
	case s.CanaryStatus != nil:
		common = &s.CanaryStatus.CommonStatus
		r.put("status_replicas_updated", float64(s.CanaryStatus.CanaryReplicas))
		r.put("status_replicas_updated_ready", float64(s.CanaryStatus.CanaryReadyReplicas))
	case s.BlueGreenStatus != nil:
		common = &s.BlueGreenStatus.CommonStatus
		r.put("status_replicas_updated", float64(s.BlueGreenStatus.UpdatedReplicas))
		r.put("status_replicas_updated_ready", float64(s.BlueGreenStatus.UpdatedReadyReplicas))
	default:
		return
	}
	if common.CurrentStepState == "" {
		return
	}
	r.put("status_step_state", 1, string(common.CurrentStepState))
	if since := common.LastUpdateTime; since != nil && s.Phase == v1beta1.RolloutPhaseProgressing {
		r.put("status_step_state_seconds", max(0, r.now.Sub(since.Time).Seconds()))
	}
}

// stepsOf returns how many steps a release of a Rollout has, and its style.
func stepsOf(rollout *v1beta1.Rollout) (steps int, style string) {
	switch strategy := rollout.Spec.Strategy; {
	case strategy.BlueGreen != nil:
		return len(strategy.BlueGreen.Steps), "blueGreen"
	case strategy.Canary == nil:
		return 0, "none"
	case strategy.Canary.EnableExtraWorkloadForCanary:
		return len(strategy.Canary.Steps), "canary"
	default:
		return len(strategy.Canary.Steps), "partition"
	}
}
