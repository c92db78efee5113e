package rollouthistory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// completed is the phase of a record that is filled in.
//
// Wire: users' tools read it.
const completed = "completed"

// Plan writes nothing: a record is all in its spec and its status.
func Plan(v State) plan.Plan {
	return plan.For(fmt.Sprintf("RolloutHistory %s/%s", v.History.Namespace, v.History.Name)).Plan()
}

// Status returns the Pods of each step, by their labels.
func Status(v State, _ plan.Plan, _ apply.Outcome) v1alpha1.RolloutHistoryStatus {
	if v.History.Status.Phase != "" || v.History.DeletionTimestamp != nil {
		return *v.History.Status.DeepCopy()
	}
	steps := map[int32][]v1alpha1.CanaryStepPodInfo{}
	for _, p := range v.Objects.Pods { // by name
		batch, err := strconv.ParseInt(p.Labels[keys.RolloutBatchID], 10, 32)
		if p.DeletionTimestamp != nil || err != nil || p.Labels[keys.RolloutID] != v.History.Spec.Rollout.RolloutID {
			continue
		}
		steps[int32(batch)] = append(steps[int32(batch)], v1alpha1.CanaryStepPodInfo{
			Name: p.Name, IP: p.Status.PodIP, NodeName: p.Spec.NodeName,
		})
	}
	out := v1alpha1.RolloutHistoryStatus{Phase: completed}
	for step, pods := range steps {
		out.CanarySteps = append(out.CanarySteps, v1alpha1.CanaryStepInfo{CanaryStepIndex: step, Pods: pods})
	}
	slices.SortFunc(out.CanarySteps, func(a, b v1alpha1.CanaryStepInfo) int { return cmp.Compare(a.CanaryStepIndex, b.CanaryStepIndex) })
	return out
}
