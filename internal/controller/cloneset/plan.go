package cloneset

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// Plan decides the next step. It reads only the survey and changes nothing.
//
// What is in flight is settled first, Pod by Pod, so that one odd Pod delays no other and a new Pod gets its first readiness even while the
// update is paused. Then Pods are added or taken away; only when nothing is to be scaled, Pods are updated, so that both never spend the
// same budget.
func Plan(v Survey) plan.Plan {
	b := plan.For(summary(&v))
	switch {
	case v.Set.DeletionTimestamp != nil:
		// The garbage collector takes the Pods, claims and revisions along.
		return b.Plan()
	case v.problem != nil:
		return b.Stop(v.problem)
	}
	rollout.WriteHistory(v.history, b)
	settle(&v, b)
	if !scale(&v, b) {
		update(&v, b)
	}
	if err := preDownload(&v, b); err != nil {
		b.Hold(plan.Hold{Why: err.Error()})
	}
	tidy(&v, b)
	recheck(&v, b)
	return b.Plan()
}

// Meanwhile decides what is due on single Pods, while Pods are being created. It reads only the survey and changes nothing.
func Meanwhile(v Survey) plan.Plan {
	b := plan.For(summary(&v))
	if v.Set.DeletionTimestamp == nil && v.problem == nil {
		settle(&v, b)
	}
	return b.Plan()
}

// settle finishes what is in flight on each Pod: grace periods, the next batch of containers, readiness, lifecycle states, missing labels.
func settle(v *Survey, b *plan.Builder) {
	wanted := v.moves(isUpdated).Update
	for _, m := range v.fleet.members {
		if workload := v.workload(); !workload.IsSettled(m.pod) {
			m.settled = workload.Settle(m.pod, m.isWhereWanted(wanted), b)
		}
	}
}

// isWhereWanted reports whether no update would move the Pod, where wanted is the number of Pods to update, negative backwards.
func (m *member) isWhereWanted(wanted int) bool {
	return wanted == 0 || m.updated == (wanted > 0)
}

func recheck(v *Survey, b *plan.Builder) {
	v.fleet.awaited.Recheck(v.Set.Spec.MinReadySeconds, b)
	if _, wait := progressOf(v); wait > 0 {
		b.Recheck(wait, fmt.Sprintf("progressDeadlineSeconds %d are over", *v.Set.Spec.ProgressDeadlineSeconds))
	}
}

// summary describes the CloneSet and its limits in a line.
func summary(v *Survey) string {
	var out strings.Builder
	fmt.Fprintf(&out, "CloneSet %s/%s   replicas %d", v.Set.Namespace, v.Set.Name, v.replicas())
	if v.problem != nil {
		return out.String()
	}
	fmt.Fprintf(&out, ", pods %d", len(v.fleet.members))
	if v.onDelete() {
		out.WriteString(", updates on delete")
	}
	if v.strategy.Paused {
		out.WriteString(", paused")
	}
	limit := func(name string, value *intstr.IntOrString, number int) {
		if number != 0 || value != nil {
			fmt.Fprintf(&out, ", %s %s", name, budget.Words(number, value))
		}
	}
	limit("partition", v.strategy.Partition, v.limits.Partition)
	limit("maxUnavailable", v.strategy.MaxUnavailable, v.limits.MaxUnavailable)
	limit("maxSurge", v.strategy.MaxSurge, v.limits.MaxSurge)
	return out.String()
}

// moves asks the budget what may be done. asUpdated says which Pods count as updated.
func (v *Survey) moves(asUpdated func(*member) bool) budget.Moves {
	return budget.Plan(v.limits, v.fleet.counts(asUpdated), budget.Rules{
		Rollback:               v.Options.PartitionRollback && v.history.Current.Name != v.history.Update.Name,
		ExcludePreparingDelete: v.excludePreparingDelete(),
	})
}

func (v *Survey) excludePreparingDelete() bool {
	return v.Options.ExcludePreparingDelete || v.Set.Spec.ScaleStrategy.ExcludePreparingDelete
}
