package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	rules "github.com/seed-69ecc383/kruise/internal/rules/spread"
	"github.com/seed-69ecc383/kruise/internal/spread"
)

// SpreadAssigner gives new Pods to the subsets of WorkloadSpreads.
type SpreadAssigner interface {
	Assign(ctx context.Context, namespace string, p *corev1.Pod) (spread.Assignment, error)
}

// Spread makes a new Pod one of a subset of the WorkloadSpread that its workload has, and opens the gate at which it waits for that. A Pod
// that names a subset already has been here before. It must come before the step that injects sidecars, which its labels may select, and
// does nothing to a Pod that will not be stored: the room is for those that are.
func Spread(assigner SpreadAssigner) Step {
	return Step{Name: "workloadspread", Run: func(ctx context.Context, s *Subject) error {
		if s.DryRun || s.Pod().Annotations[keys.MatchedWorkloadSpread] != "" {
			return nil
		}
		assigned, err := assigner.Assign(ctx, s.Namespace, s.Pod())
		if err != nil || assigned.Spread == nil {
			return err
		}
		if rules.IsGated(s.Pod()) {
			rules.OpenGate(s.Edit())
		}
		if assigned.Subset < 0 {
			return nil
		}
		if err := rules.Inject(s.Edit(), assigned.Spread, assigned.Given); err != nil {
			return Denied{err}
		}
		return nil
	}}
}
