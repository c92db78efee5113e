package cloneset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
)

// Plan decides the next step. It reads only the state and changes nothing but its notes of this pass.
//
// What is in flight is settled first, Pod by Pod, so that one odd Pod delays no other and a new Pod gets its first readiness even while the
// update is paused. Then Pods are added or taken away; only when nothing is to be scaled, Pods are updated, so that both never spend the
// same budget.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	switch {
	case v.Set.DeletionTimestamp != nil:
		// The garbage collector takes the Pods, claims and revisions along.
		return b.Plan()
	case v.problem != nil:
		return b.Stop(v.problem)
	}
	rollout.WriteHistory(v.workload.History, b)
	v.settle(b)
	if !v.scale(b) {
		v.update(b)
	}
	v.preDownload(b)
	v.tidy(b)
	_, deadline := v.progressing()
	v.workload.Recheck(deadline, b)
	return b.Plan()
}

// WhileCreating decides what is due on single Pods, while Pods are being created. It reads only the state and changes nothing.
func WhileCreating(v State) plan.Plan {
	b := plan.For(v.summary())
	if v.Set.DeletionTimestamp == nil && v.problem == nil {
		v.settle(b)
	}
	return b.Plan()
}

// settle finishes what is in flight on each Pod: grace periods, the next batch of containers, readiness, lifecycle states, missing labels.
func (v *State) settle(b *plan.Builder) {
	wanted := v.moves(isUpdated).Update
	for _, m := range v.members {
		// No update would move the Pod where none is wanted, or where it has come in the direction of the update.
		v.workload.Settle(m, wanted == 0 || m.Updated == (wanted > 0), b)
	}
}

// preDownload has the images of an update pulled before the Pods are updated in place.
func (v *State) preDownload(b *plan.Builder) {
	if v.Options.PreDownload {
		v.workload.PreDownloadInPlace(rollout.Pace{
			InPlace: v.inPlace(), Replicas: int(v.replicas()), Partition: v.limits.Partition, MaxUnavailable: v.limits.MaxUnavailable,
		}, v.strategy.InPlaceUpdateStrategy, v.podCounts().UpdatedReady, b)
	}
}

// summary describes the CloneSet and its limits in a line.
func (v *State) summary() string {
	parts := []string{fmt.Sprintf("replicas %d", v.replicas())}
	if v.problem != nil {
		return v.workload.Summary(parts...)
	}
	parts = append(parts, fmt.Sprintf("pods %d", len(v.members)))
	if v.workload.OnDelete {
		parts = append(parts, "updates on delete")
	}
	if v.workload.Paused {
		parts = append(parts, "paused")
	}
	limit := func(name string, value *intstr.IntOrString, number int) {
		if number != 0 || value != nil {
			parts = append(parts, rollout.Limit(name, number, value))
		}
	}
	limit("partition", v.strategy.Partition, v.limits.Partition)
	limit("maxUnavailable", v.strategy.MaxUnavailable, v.limits.MaxUnavailable)
	limit("maxSurge", v.strategy.MaxSurge, v.limits.MaxSurge)
	return v.workload.Summary(parts...)
}
