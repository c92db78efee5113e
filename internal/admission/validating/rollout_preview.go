package validating

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// preview warns of steps that do not come to what they seem to for the workload as it is now. It never refuses: a workload is scaled, and
// one that can't be read is nothing that a Rollout has to wait for.
func (o RolloutOptions) preview(ctx context.Context, found *findings, w write[v1beta1.Rollout]) {
	ref, strategy := w.new.Spec.WorkloadRef, w.new.Spec.Strategy
	kind, ok := steer.Of(groupKind(ref), steer.StyleOf(strategy))
	isSame := w.old != nil && w.old.Spec.WorkloadRef == ref && equality.Semantic.DeepEqual(w.old.Spec.Strategy, strategy)
	if o.Live == nil || isSame || !ok {
		return
	}
	workload := releases.Empty(ref)
	if err := o.Live.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: ref.Name}, workload); err != nil {
		return
	}
	stages, err := steer.Preview(kind, steer.Objects{Workload: workload}, strategy)
	if err != nil {
		return // the rules refuse what can't be read
	}
	for _, s := range stages {
		for _, remark := range s.Remarks {
			found.warn("step %d of %d: %s", s.Step, s.Steps, remark)
		}
	}
}
