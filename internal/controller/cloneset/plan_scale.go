package cloneset

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
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
func scale(v *Survey, b *plan.Builder) bool {
	back := comeBack(v, b)
	moves := v.scaleMoves()
	if moves.Create > 0 && create(v, moves, b) {
		return true
	}
	return remove(v, moves, b) || back
}

// scaleMoves asks the budget what is to be added and taken away.
func (v *Survey) scaleMoves() budget.Moves {
	return v.moves(func(m *member) bool {
		return m.updated || (v.Options.PreparingUpdateAsUpdate && m.state == pub.LifecycleStatePreparingUpdate)
	})
}

// comeBack takes Pods back into service that wait for their preDelete hook although their deletion is not wanted any more, because replicas
// grew meanwhile. It does not where a hook marks Pods NotReady: their traffic has been drained already.
func comeBack(v *Survey, b *plan.Builder) bool {
	if lifecycle.MarksNotReady(v.Set.Spec.Lifecycle) {
		return false
	}
	leaving := 0
	for _, m := range v.fleet.members {
		if m.specified || m.state == pub.LifecycleStatePreparingDelete {
			leaving++
		}
	}
	missing := int(v.replicas()) - len(v.fleet.members) + leaving
	acted := false
	for _, m := range v.fleet.members {
		if missing <= 0 {
			break
		}
		if m.specified || m.settled || m.state != pub.LifecycleStatePreparingDelete {
			continue
		}
		missing--
		b.Do(v.workload().ComeBack(m.pod, pub.LifecycleStatePreparingNormal)...)
		m.settled, m.state, acted = true, pub.LifecycleStatePreparingNormal, true
	}
	return acted
}

// burst is the most Pods that one pass creates: so many are decided on before what has happened meanwhile counts, as a new number of replicas.
const burst = 250

// create adds the missing Pods, as many at once as scaleStrategy.maxUnavailable allows.
func create(v *Survey, moves budget.Moves, b *plan.Builder) bool {
	if moves.CreateNow < moves.Create {
		b.Hold(plan.Hold{
			Why:   fmt.Sprintf("scaleUp is limited because of scaleStrategy.maxUnavailable, limit: %d", v.limits.ScaleMaxUnavailable),
			Event: eventScaleUpLimited,
		})
	}
	number := min(moves.CreateNow-awaitLeaving(v, b), burst)
	if number <= 0 {
		return false
	}
	ids := v.newIDs()
	why := fmt.Sprintf("%d of %d Pods are there", len(v.fleet.members), int(v.replicas())+moves.Surge)
	if moves.Surge > 0 {
		why += fmt.Sprintf(" (maxSurge %d)", moves.Surge)
	}
	old := min(moves.CreateOld, number)
	for i := range number {
		rev := v.history.Update
		if i < old {
			rev = v.history.Current
		}
		chain, err := newPod(v, rev, ids.next())
		if err != nil {
			b.Hold(plan.Hold{Why: err.Error(), Event: eventFailedCreate, Failure: plan.Scale})
			return i > 0
		}
		chain[len(chain)-1].Why = why
		b.Do(chain...)
	}
	return true
}

// How long a Pod that is being deleted from outside keeps its place, so that its replacement can take over its name and its claims.
const waitForClaims = 20 * time.Second

// awaitLeaving returns how many Pods are not to be created yet, because a Pod of that many is being deleted from outside whose claims the
// new one shall take over. A Pod that is stuck gives up its claims after a while: then the new one gets claims of its own.
func awaitLeaving(v *Survey, b *plan.Builder) int {
	if !v.Set.Spec.ScaleStrategy.EnablePVCReuse {
		return 0
	}
	awaited := 0
	for _, p := range v.fleet.leaving {
		if p.DeletionTimestamp == nil || !hasLiveClaims(claim.Of(claim.InstanceID(p, v.Set.Name), v.Claims)) {
			continue
		}
		asked := p.DeletionTimestamp.Time
		if p.DeletionGracePeriodSeconds != nil {
			asked = asked.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
		}
		wait := asked.Add(waitForClaims).Sub(v.Now)
		if wait <= 0 {
			continue
		}
		awaited++
		b.Hold(plan.Hold{Name: p.Name, Why: "its replacement takes over its claims once it is gone"})
		b.Recheck(wait, fmt.Sprintf("%s gives up its claims", p.Name))
	}
	return awaited
}

func hasLiveClaims(claims []*corev1.PersistentVolumeClaim) bool {
	for _, c := range claims {
		if c.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

// remove deletes Pods: those whose preDelete hook has let go, those that the user named, and then the surplus. A Pod that is not available
// costs nothing; the others go within maxUnavailable.
func remove(v *Survey, moves budget.Moves, b *plan.Builder) bool {
	ready := moves.DeleteReady
	acted := false
	for _, m := range v.fleet.members {
		if m.state == pub.LifecycleStatePreparingDelete && !m.settled {
			acted = deletePod(v, m, "its preDelete hook let go", b) || acted
		}
	}
	for _, m := range v.fleet.members {
		switch {
		case !m.specified || m.settled || m.state == pub.LifecycleStatePreparingDelete:
		case m.available && ready <= 0:
			b.Hold(plan.Hold{Name: m.pod.Name, Why: fmt.Sprintf("it is named for deletion, but maxUnavailable %d is used up", v.limits.MaxUnavailable)})
		default:
			if m.available {
				ready--
			}
			acted = deletePod(v, m, "it is named for deletion", b) || acted
		}
	}
	return removeSurplus(v, moves, ready, b) || acted
}

// removeSurplus scales in: first the surplus of older revisions, then of the update revision, in each case the least valuable Pods first.
func removeSurplus(v *Survey, moves budget.Moves, ready int, b *plan.Builder) bool {
	old, total := moves.DeleteOld, moves.Delete
	if !v.excludePreparingDelete() {
		// Pods that wait for their preDelete hook are counted as replicas, but they are on their way.
		for _, m := range v.fleet.members {
			if m.state == pub.LifecycleStatePreparingDelete && !m.specified {
				total--
				if !m.updated {
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
			if m.available {
				if ready <= 0 {
					b.Hold(plan.Hold{Name: m.pod.Name, Why: fmt.Sprintf("it is to be scaled in, but maxUnavailable %d is used up", v.limits.MaxUnavailable)})
					return
				}
				ready--
			}
			number--
			acted = deletePod(v, m, fmt.Sprintf("%d Pods are wanted", int(v.replicas())+moves.Surge), b) || acted
		}
	}
	old = max(old, 0)
	take(false, old)
	take(true, total-old)
	return acted
}

// leastValuable returns the Pods of one side that scaling in may take, the first to go first.
func (v *Survey) leastValuable(updated bool) []*member {
	byPod := map[*corev1.Pod]*member{}
	var candidates []*corev1.Pod
	for _, m := range v.fleet.members {
		if m.updated == updated && !m.specified && !m.settled && m.state != pub.LifecycleStatePreparingDelete {
			byPod[m.pod] = m
			candidates = append(candidates, m.pod)
		}
	}
	ranked := order.ScaleIn(candidates, v.fleet.pods(), order.ScaleInOptions{
		Now:             v.Now,
		MinReadySeconds: v.Set.Spec.MinReadySeconds,
		NodeLabels:      func(node string) map[string]string { return v.NodeLabels[node] },
		Constraints:     v.Set.Spec.Template.Spec.TopologySpreadConstraints,
	})
	members := make([]*member, 0, len(ranked))
	for _, p := range ranked {
		members = append(members, byPod[p])
	}
	return members
}

// deletePod deletes a Pod and its claims, or, while its preDelete hook holds it, has it wait in PreparingDelete. It reports whether it
// planned a write.
func deletePod(v *Survey, m *member, why string, b *plan.Builder) bool {
	if waits, told := v.workload().AwaitHook(m.pod, plan.Scale, why, b); waits {
		m.settled = m.settled || told
		return told
	}
	m.settled = true
	b.Do(deletion(v, m, plan.Action{
		Concern: plan.Scale, What: "delete", Why: why,
		Event: eventSuccessfulDelete, EventMessage: "succeed to delete pod " + m.pod.Name, FailedEvent: eventFailedDelete,
	})...)
	return true
}

// deletion returns the writes that delete a Pod and then its claims, which go with it.
func deletion(v *Survey, m *member, as plan.Action) plan.Chain {
	as.Verb, as.Before = plan.Delete, m.pod
	chain := plan.Chain{as}
	for _, c := range claim.Of(m.instance, v.Claims) {
		if c.DeletionTimestamp == nil {
			chain = append(chain, plan.Action{Verb: plan.Delete, Concern: plan.Scale, Before: c, AnyVersion: true, FailedEvent: eventFailedDelete})
		}
	}
	return chain
}

// isReplaceable reports whether the Pod may be chosen by an update at all.
func (m *member) isReplaceable() bool {
	return !m.settled && !m.specified && m.state != pub.LifecycleStatePreparingDelete && pod.IsActive(m.pod)
}
