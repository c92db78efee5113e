package cloneset

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
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
	return v.workload.RecheckWaiting(v.members, b.Plan())
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

// update moves Pods to the revision they are wanted at, in order, within maxUnavailable.
func (v *State) update(b *plan.Builder) {
	moves := v.moves(isUpdated)
	target, number := v.workload.History.Update, moves.Update
	if number < 0 {
		target, number = v.workload.History.Current, -number
	}
	if number == 0 {
		return
	}
	if code, why := v.workload.WhyNotUpdating(); why != "" {
		b.Hold(plan.Hold{Code: code, Why: fmt.Sprintf("%s: %d Pods are not at %s", why, number, target.Name)})
		return
	}
	candidates, err := v.candidates(target)
	if err != nil {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: err.Error(), Event: rollout.EventFailedUpdate, Failure: plan.Rollout})
		return
	}
	chosen := v.choose(candidates, target, number, moves.UpdateLimit)
	why := fmt.Sprintf("%s is wanted on %d Pods, %d have it", target.Name, v.limits.Expected(), v.counts(isUpdated).New.Total)
	step := v.stepTo(target)
	step.why = why
	for _, m := range candidates[:chosen] {
		step.take(m, b)
	}
	if wanted := min(number, len(candidates)); chosen < wanted {
		b.Hold(plan.Hold{
			Code: reason.WaitBudget, Name: candidates[chosen].Pod.Name,
			Why: fmt.Sprintf("%d Pods wait: maxUnavailable %d is used up", wanted-chosen, v.limits.MaxUnavailable),
		})
	}
}

// candidates returns the Pods that could be brought to the target, the first to update first.
func (v *State) candidates(target *appsv1.ControllerRevision) ([]*rollout.Member, error) {
	forward := target.Name == v.workload.History.Update.Name
	candidates := slices.DeleteFunc(slices.Clone(v.members), func(m *rollout.Member) bool {
		return m.Updated == forward || !m.IsFree() || m.Specified
	})
	sorted, err := order.Sort(podsOf(candidates), v.pods(), order.Strategy{
		Priority: v.strategy.PriorityStrategy,
		Scatter:  v.strategy.ScatterStrategy,
	})
	if err != nil {
		return nil, fmt.Errorf("ordering the update: %w", err)
	}
	return inOrder(candidates, sorted), nil
}

// choose returns how many of the first candidates can be updated now.
func (v *State) choose(candidates []*rollout.Member, target *appsv1.ControllerRevision, number, limit int) int {
	forward := target.Name == v.workload.History.Update.Name
	c := budget.Candidates{}
	for _, m := range v.members {
		if !m.Available {
			c.Unavailable++
			if m.Updated == forward {
				c.UnavailableAtTarget++
			}
		}
	}
	for _, m := range candidates {
		c.Available = append(c.Available, m.Available)
	}
	return max(budget.Take(c, number, limit), startedOf(candidates, number))
}

// startedOf returns how many of the first candidates have left service for the update already. Their place is paid for, also where
// maxUnavailable is 0 and they could leave thanks to a Pod that has gone since.
func startedOf(candidates []*rollout.Member, number int) int {
	started := 0
	for _, m := range candidates[:min(number, len(candidates))] {
		if m.State != pub.LifecycleStatePreparingUpdate {
			break
		}
		started++
	}
	return started
}

// step updates one Pod after another to the same target, in place where that is wanted and can be done.
type step struct {
	*State
	updater *rollout.Updater
	target  *appsv1.ControllerRevision
	why     string
	refused bool
}

func (v *State) stepTo(target *appsv1.ControllerRevision) *step {
	options := v.Options.InPlace
	options.IgnoreClaims = v.inPlaceOnly() || !v.Options.RecreateOnClaimChange
	s := &step{State: v, target: target, updater: v.workload.UpdaterTo(target, options)}
	if details := v.strategy.InPlaceUpdateStrategy; details != nil {
		s.updater.GraceSeconds = details.GracePeriodSeconds
	}
	return s
}

func (s *step) take(m *rollout.Member, b *plan.Builder) {
	if !s.inPlace() {
		s.recreate(m, "recreate", "", b)
		return
	}
	switch refusal := s.updater.Refusal(m.Pod); {
	case refusal == "":
		s.updater.Update(m.Pod, s.why, b)
	case !s.inPlaceOnly():
		s.recreate(m, "recreate: "+refusal, s.updater.RefusedField(m.Pod), b)
	case !s.refused:
		s.refused = true
		s.updater.HoldRefused(m.Pod, refusal, b)
	}
}

// recreate deletes the Pod, whose place is then filled at the target revision. A Pod that its preDelete hook holds is marked for deletion
// and waits. notInPlace is the field of the template that stands against an update in place where one was wanted.
func (s *step) recreate(m *rollout.Member, what, notInPlace string, b *plan.Builder) {
	event := fmt.Sprintf("successfully delete pod %s for update(revision %s)", m.Pod.Name, s.target.Name)
	if chain := s.workload.PrepareDelete(m.Pod, plan.Rollout); chain != nil {
		for _, version := range chain {
			version.After.GetLabels()[keys.SpecifiedDelete] = "true"
		}
		chain[0].Why = s.why
		chain[0].Event, chain[0].EventMessage = eventSuccessfulUpdatePodReCreate, event
		chain[0].FailedEvent = eventFailedUpdatePodReCreate
		chain[0].Method, chain[0].NotInPlace = plan.Recreate, notInPlace
		b.Do(chain...)
		return
	}
	b.Do(s.deletion(m, plan.Action{
		Concern: plan.Rollout, What: what, Why: s.why,
		Event: eventSuccessfulUpdatePodReCreate, EventMessage: event, FailedEvent: eventFailedUpdatePodReCreate,
		Method: plan.Recreate, NotInPlace: notInPlace,
	})...)
}

// tidy keeps the records: who owns what, which names and revisions are still of use.
func (v *State) tidy(b *plan.Builder) {
	v.releaseStrays(b)
	v.trimPodsToDelete(b)
	rollout.TrimHistory(v.workload.History, v.Set.Spec.RevisionHistoryLimit, append(v.pods(), v.leaving...), b)
	if !v.Set.Spec.ScaleStrategy.EnablePVCReuse {
		v.tidyClaims(b)
	}
}

// releaseStrays releases Pods whose labels the selector does not match any more. A Pod takes its claims along, which is written first:
// afterwards nothing would tell whose they are.
func (v *State) releaseStrays(b *plan.Builder) {
	for _, p := range v.release {
		var chain plan.Chain
		for _, c := range v.claimsOf(p) {
			if !isOwnedBy(c, p.UID) {
				chain = append(chain, v.handOver(c, p, "the Pod is let go"))
			}
		}
		b.Do(append(chain, v.workload.Release(p, "its labels do not match the selector any more"))...)
	}
}

// trimPodsToDelete takes names off the list whose Pods are gone.
func (v *State) trimPodsToDelete(b *plan.Builder) {
	names := v.Set.Spec.ScaleStrategy.PodsToDelete
	kept := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(v.members, func(m *rollout.Member) bool { return m.Pod.Name == name })
	})
	if len(kept) == len(names) {
		return
	}
	after := v.Set.DeepCopy()
	after.Spec.ScaleStrategy.PodsToDelete = kept
	b.Do(plan.Action{
		Verb: plan.Update, Concern: plan.Tidy, Before: v.Set, After: after,
		What: fmt.Sprintf("%d names less in podsToDelete", len(names)-len(kept)), Why: "their Pods are gone",
	})
}

// tidyClaims has the claims of Pods that do not count any more deleted with these Pods, where claims are not reused.
func (v *State) tidyClaims(b *plan.Builder) {
	orphans := claim.Orphans(v.Claims, append(v.pods(), v.release...), v.leaving, v.Set.Name)
	for _, c := range orphans.Delete {
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Scale, Before: c, FailedEvent: rollout.EventFailedDelete,
			What: "delete claim", Why: "its Pod is gone and claims are not reused",
		})
	}
	for _, pair := range orphans.ToPod {
		why := "the Pod is being deleted"
		if pod.IsFinished(pair.Pod) {
			why = "the Pod has ended"
		}
		b.Do(v.handOver(pair.Claim, pair.Pod, why))
	}
}

// handOver returns the write that makes a claim the Pod's own, with which it is then deleted.
func (v *State) handOver(c *corev1.PersistentVolumeClaim, p *corev1.Pod, why string) plan.Action {
	after := c.DeepCopy()
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.UID == v.Set.UID
	})
	if !isOwnedBy(after, p.UID) {
		after.OwnerReferences = append(after.OwnerReferences,
			metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID})
	}
	return plan.Action{
		Verb: plan.Update, Concern: plan.Scale, Before: c, After: after, FailedEvent: rollout.EventFailedUpdate,
		What: "claim goes with its Pod", Why: why,
	}
}

func isOwnedBy(object metav1.Object, uid types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}
