package steer

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
)

// Preview returns what each step of a Rollout comes to for its workload, by the functions by which the release then goes: so many updated
// Pods, and so much traffic. Nothing but the workload is read of the objects. It returns nil for a Rollout without steps.
func Preview(k Kind, o Objects, strategy v1beta1.RolloutStrategy) ([]release.Stage, error) {
	steps := StepsOf(&strategy)
	if steps == nil {
		return nil, nil
	}
	planned := func(step *intstr.IntOrString) (int32, error) { return k.Planned(o, step) }
	return release.Preview(release.PlanOf(StyleOf(strategy), steps), k.See(o).Replicas, planned)
}
