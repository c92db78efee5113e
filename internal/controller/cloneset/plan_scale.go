package cloneset

import (
	"fmt"
	"slices"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
	eventSuccessfulCreate            = "SuccessfulCreate"
	eventFailedCreate                = "FailedCreate"
	eventSuccessfulDelete            = "SuccessfulDelete"
	eventFailedDelete                = "FailedDelete"
	eventFailedUpdate                = "FailedUpdate"
	eventScaleUpLimited              = "ScaleUpLimited"
	eventSuccessfulUpdatePodReCreate = "SuccessfulUpdatePodReCreate"
	eventFailedUpdatePodReCreate     = "FailedUpdatePodReCreate"
)

// scale adds and takes away Pods, and reports whether it planned anything. What it plans spends the same budget as an update, so that the
// update then waits for the next pass.
func (v *State) scale(b *plan.Builder) bool {
	back := v.cancelDeletions(b)
	moves := v.scaleMoves()
	if moves.Create > 0 && v.create(moves, b) {
		return true
	}
	return v.remove(moves, b) || back
}

// scaleMoves asks the budget what is to be added and taken away.
func (v *State) scaleMoves() budget.Moves {
	return v.moves(func(m *rollout.Member) bool {
		return m.Updated || (v.Options.PreparingUpdateAsUpdate && m.State == pub.LifecycleStatePreparingUpdate)
	})
}

// cancelDeletions takes Pods back into service that wait for their preDelete hook although their deletion is not wanted any more,
// because replicas grew meanwhile. It does not where a hook marks Pods NotReady: their traffic has been drained already.
func (v *State) cancelDeletions(b *plan.Builder) bool {
	if lifecycle.MarksNotReady(v.workload.Lifecycle) {
		return false
	}
	leaving := 0
	for _, m := range v.members {
		if m.Specified || m.IsHeld() {
			leaving++
		}
	}
	missing := int(v.replicas()) - len(v.members) + leaving
	acted := false
	for _, m := range v.members {
		if missing <= 0 {
			break
		}
		if m.Specified || m.Settled || !m.IsHeld() {
			continue
		}
		missing--
		v.workload.CancelDeletion(m, pub.LifecycleStatePreparingNormal, b)
		m.State, acted = pub.LifecycleStatePreparingNormal, true
	}
	return acted
}

// remove deletes Pods: those that their preDelete hook has released, those that the user named, and then the surplus. A Pod that is not
// available costs nothing; the others go within maxUnavailable.
func (v *State) remove(moves budget.Moves, b *plan.Builder) bool {
	ready := moves.DeleteReady
	acted := false
	for _, m := range v.members {
		if m.IsHeld() && !m.Settled {
			acted = v.deletePod(m, "its preDelete hook let go", b) || acted
		}
	}
	for _, m := range v.members {
		switch {
		case !m.Specified || m.Settled || m.IsHeld():
		case m.Available && ready <= 0:
			b.Hold(plan.Hold{
				Name: m.Pod.Name, Why: fmt.Sprintf("it is named for deletion, but maxUnavailable %d is used up", v.limits.MaxUnavailable),
			})
		default:
			if m.Available {
				ready--
			}
			acted = v.deletePod(m, "it is named for deletion", b) || acted
		}
	}
	return v.removeSurplus(moves, ready, b) || acted
}

// removeSurplus scales in: first the surplus of older revisions, then of the update revision, in each case the least valuable Pods first.
func (v *State) removeSurplus(moves budget.Moves, ready int, b *plan.Builder) bool {
	old, total := moves.DeleteOld, moves.Delete
	if !v.excludePreparingDelete() {
		// Pods that wait for their preDelete hook are counted as replicas, but they are on their way.
		for _, m := range v.members {
			if m.IsHeld() && !m.Specified {
				total--
				if !m.Updated {
					old--
				}
			}
		}
	}
	acted := false
	take := func(updated bool, number int) {
		if number <= 0 {
			return
		}
		for _, m := range v.leastValuable(updated) {
			if number == 0 {
				return
			}
			if m.Available {
				if ready <= 0 {
					b.Hold(plan.Hold{
						Name: m.Pod.Name, Why: fmt.Sprintf("it is to be scaled in, but maxUnavailable %d is used up", v.limits.MaxUnavailable),
					})
					return
				}
				ready--
			}
			number--
			acted = v.deletePod(m, fmt.Sprintf("%d Pods are wanted", int(v.replicas())+moves.Surge), b) || acted
		}
	}
	old = max(old, 0)
	take(false, old)
	take(true, total-old)
	return acted
}

// leastValuable returns the Pods of one side that scaling in may take, the first to go first.
func (v *State) leastValuable(updated bool) []*rollout.Member {
	candidates := slices.DeleteFunc(slices.Clone(v.members), func(m *rollout.Member) bool {
		return m.Updated != updated || m.Specified || m.Settled || m.IsHeld()
	})
	return inOrder(candidates, order.ScaleIn(podsOf(candidates), v.pods(), order.ScaleInOptions{
		Now:             v.Now,
		MinReadySeconds: v.Set.Spec.MinReadySeconds,
		NodeLabels:      func(node string) map[string]string { return v.NodeLabels[node] },
		Constraints:     v.Set.Spec.Template.Spec.TopologySpreadConstraints,
	}))
}

// deletePod deletes a Pod and its claims, or, while its preDelete hook holds it, has it wait in PreparingDelete. It reports whether it
// planned a write.
func (v *State) deletePod(m *rollout.Member, why string, b *plan.Builder) bool {
	if v.workload.AwaitHook(m, plan.Scale, why, b) {
		return m.Settled
	}
	m.Settled = true
	b.Do(v.deletion(m, plan.Action{
		Concern: plan.Scale, What: "delete", Why: why,
		Event: eventSuccessfulDelete, EventMessage: "succeed to delete pod " + m.Pod.Name, FailedEvent: eventFailedDelete,
	})...)
	return true
}

// deletion returns the writes that delete a Pod and then its claims, which go with it.
func (v *State) deletion(m *rollout.Member, as plan.Action) plan.Chain {
	as.Verb, as.Before = plan.Delete, m.Pod
	chain := plan.Chain{as}
	for _, c := range claim.Of(claim.InstanceID(m.Pod, v.Set.Name), v.Claims) {
		if c.DeletionTimestamp == nil {
			chain = append(chain, plan.Action{Verb: plan.Delete, Concern: plan.Scale, Before: c, AnyVersion: true, FailedEvent: eventFailedDelete})
		}
	}
	return chain
}
