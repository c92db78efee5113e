package cloneset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/order"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
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
			v.holdDeletion(m, "it is named for deletion", b)
		default:
			if m.Available {
				ready--
			}
			acted = v.deletePod(m, "it is named for deletion", b) || acted
		}
	}
	return v.removeSurplus(moves, ready, b) || acted
}

func (v *State) holdDeletion(m *rollout.Member, what string, b *plan.Builder) {
	b.Hold(plan.Hold{Code: reason.WaitBudget, Name: m.Pod.Name, Why: fmt.Sprintf("%s, but maxUnavailable %d is used up", what,
		v.limits.MaxUnavailable)})
}

// removeSurplus scales in: first the surplus of older revisions, then of the update revision, in each case the least valuable Pods first.
func (v *State) removeSurplus(moves budget.Moves, ready int, b *plan.Builder) bool {
	old, total := moves.DeleteOld, moves.Delete
	if !v.excludePreparingDelete() {
		// Pods that wait for their preDelete hook are counted as replicas, but they are on their way: those that the user has named, too.
		for _, m := range v.members {
			if m.IsHeld() {
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
					v.holdDeletion(m, "it is to be scaled in", b)
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
		Event: rollout.EventSuccessfulDelete, EventMessage: "succeed to delete pod " + m.Pod.Name, FailedEvent: rollout.EventFailedDelete,
	})...)
	return true
}

// deletion returns the writes that delete a Pod and then its claims, which go with it.
func (v *State) deletion(m *rollout.Member, as plan.Action) plan.Chain {
	as.Verb, as.Before = plan.Delete, m.Pod
	chain := plan.Chain{as}
	for _, c := range v.claimsOf(m.Pod) {
		chain = append(chain, plan.Action{
			Verb: plan.Delete, Concern: plan.Scale, Before: c, AnyVersion: true, FailedEvent: rollout.EventFailedDelete,
		})
	}
	return chain
}

// create adds the missing Pods, as many at once as scaleStrategy.maxUnavailable allows.
func (v *State) create(moves budget.Moves, b *plan.Builder) bool {
	if moves.CreateNow < moves.Create {
		b.Hold(plan.Hold{
			Code:  reason.WaitBudget,
			Why:   fmt.Sprintf("scaleUp is limited because of scaleStrategy.maxUnavailable, limit: %d", v.limits.ScaleMaxUnavailable),
			Event: eventScaleUpLimited,
		})
	}
	number := moves.CreateNow - v.waitingForClaims(b)
	if number <= 0 {
		return false
	}
	if number > rollout.CreateBurst {
		number = rollout.CreateBurst
		b.More()
	}
	ids := v.newIDs()
	why := fmt.Sprintf("%d of %d Pods are there", len(v.members), int(v.replicas())+moves.Surge)
	if moves.Surge > 0 {
		why += fmt.Sprintf(" (maxSurge %d)", moves.Surge)
	}
	old := min(moves.CreateOld, number)
	for i := range number {
		rev := v.workload.History.Update
		if i < old {
			rev = v.workload.History.Current
		}
		chain, err := v.newPod(rev, ids.next())
		if err != nil {
			b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: err.Error(), Event: rollout.EventFailedCreate, Failure: plan.Scale})
			return i > 0
		}
		chain[len(chain)-1].Why = why
		b.Do(chain...)
	}
	return true
}

// waitForClaims is how long a Pod that somebody else deletes keeps its place, so that its replacement can take over its name and its
// claims.
const waitForClaims = 20 * time.Second

// waitingForClaims returns how many Pods are not to be created yet, because a Pod of that many is being deleted by somebody else whose
// claims the new one shall take over. A Pod that is stuck gives up its claims after a while: then the new one gets claims of its own.
func (v *State) waitingForClaims(b *plan.Builder) int {
	if !v.Set.Spec.ScaleStrategy.EnablePVCReuse {
		return 0
	}
	waiting := 0
	for _, p := range v.leaving {
		if p.DeletionTimestamp == nil || len(v.claimsOf(p)) == 0 {
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
		waiting++
		b.Hold(plan.Hold{Code: reason.WaitReplacement, Name: p.Name, Why: "its replacement takes over its claims once it is gone"})
		b.Recheck(wait, fmt.Sprintf("%s gives up its claims", p.Name))
	}
	return waiting
}

// claimsOf returns the claims of a Pod, but for those that are being deleted.
func (v *State) claimsOf(p *corev1.Pod) []*corev1.PersistentVolumeClaim {
	return claim.Of(claim.InstanceID(p, v.Set.Name), v.Claims)
}

// instanceIDs hands out the ids of new Pods: first those whose claims wait for a Pod, then new ones.
type instanceIDs struct {
	reusable []string
	// used are the ids that no new Pod gets, and tried is how many ids were looked at.
	used    sets.Set[string]
	tried   uint64
	purpose []string
}

func (i *instanceIDs) next() string {
	if len(i.reusable) > 0 {
		id := i.reusable[0]
		i.reusable = i.reusable[1:]
		return id
	}
	for {
		id := pod.Suffix(i.tried, i.purpose...)
		i.tried++
		if !i.used.Has(id) {
			return id
		}
	}
}

// newIDs depends on nothing but what was seen: the ids of a CloneSet at a revision have an order, of which each new Pod gets the first that
// is free. So a pass that is repeated because the answer to a create was lost asks for the same Pod again instead of one more.
func (v *State) newIDs() *instanceIDs {
	used := sets.New[string]()
	use := func(names ...string) {
		for _, name := range names {
			// Ids have no dash, and end the names of both Pods and claims.
			used.Insert(name[strings.LastIndexByte(name, '-')+1:])
		}
	}
	for _, p := range slices.Concat(v.pods(), v.leaving, v.release) {
		used.Insert(claim.InstanceID(p, v.Set.Name))
	}
	use(v.Taken...)
	ids := &instanceIDs{used: used, purpose: []string{string(v.Set.UID), v.workload.History.Update.Name}}
	if v.Set.Spec.ScaleStrategy.EnablePVCReuse {
		ids.reusable = claim.Reusable(v.Claims, used)
	}
	for _, c := range v.Claims {
		used.Insert(c.Labels[keys.InstanceID])
	}
	use(v.Former...)
	return ids
}

// newPod returns the writes that create a Pod at the revision: its missing claims, then the Pod.
func (v *State) newPod(rev *appsv1.ControllerRevision, id string) (plan.Chain, error) {
	template, claimTemplates, err := v.templates(rev)
	if err != nil {
		return nil, err
	}
	var chain plan.Chain
	owner := claim.Owner{
		Name: v.Set.Name, Namespace: v.Set.Namespace, Reference: v.workload.Owner(), SelectorMatchLabels: v.Set.Spec.Selector.MatchLabels,
	}
	for _, c := range claim.ForPod(owner, id, claimTemplates) {
		if !slices.ContainsFunc(v.Claims, func(have *corev1.PersistentVolumeClaim) bool { return have.Name == c.Name }) {
			chain = append(chain, plan.Action{Verb: plan.Create, Concern: plan.Scale, After: c, FailedEvent: rollout.EventFailedCreate})
		}
	}
	p := v.workload.NewPod(template, rev)
	p.Name = v.Set.Name + "-" + id
	p.Labels[keys.InstanceID] = id
	lifecycle.Enter(p, pub.LifecycleStatePreparingNormal, v.workload.Lifecycle, v.Now)
	pod.AddReadinessGates(p, pub.InPlaceUpdateReady, pub.KruisePodReady)
	claim.Mount(p, v.Set.Name, id, claimTemplates)
	return append(chain, rollout.CreatePod(p, rev, "succeed to create pod "+p.Name)), nil
}

// templates returns the Pod template and the claim templates of a revision. Those of the update revision are in the spec; those of an older
// one are stored with it, but for the claim templates of revisions that other software wrote, for which the present ones stand in.
func (v *State) templates(rev *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, []corev1.PersistentVolumeClaim, error) {
	if rev.Name == v.workload.History.Update.Name {
		return &v.Set.Spec.Template, v.Set.Spec.VolumeClaimTemplates, nil
	}
	template, err := v.workload.History.Template(rev, &v.Set.Spec.Template)
	if err != nil {
		return nil, nil, err
	}
	encoded, ok := rev.Annotations[keys.RevisionClaimTemplates]
	if !ok {
		return template, v.Set.Spec.VolumeClaimTemplates, nil
	}
	claims, err := claim.DecodeTemplates(encoded)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the claim templates of revision %s: %w", rev.Name, err)
	}
	return template, claims, nil
}
