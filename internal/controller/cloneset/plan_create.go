package cloneset

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// burst is the most Pods that one pass creates: so many are decided on before what has happened meanwhile counts, as a new number of
// replicas.
const burst = 250

// create adds the missing Pods, as many at once as scaleStrategy.maxUnavailable allows.
func (v *State) create(moves budget.Moves, b *plan.Builder) bool {
	if moves.CreateNow < moves.Create {
		b.Hold(plan.Hold{
			Why:   fmt.Sprintf("scaleUp is limited because of scaleStrategy.maxUnavailable, limit: %d", v.limits.ScaleMaxUnavailable),
			Event: eventScaleUpLimited,
		})
	}
	number := min(moves.CreateNow-v.waitingForClaims(b), burst)
	if number <= 0 {
		return false
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
			b.Hold(plan.Hold{Why: err.Error(), Event: eventFailedCreate, Failure: plan.Scale})
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
		waiting++
		b.Hold(plan.Hold{Name: p.Name, Why: "its replacement takes over its claims once it is gone"})
		b.Recheck(wait, fmt.Sprintf("%s gives up its claims", p.Name))
	}
	return waiting
}

func hasLiveClaims(claims []*corev1.PersistentVolumeClaim) bool {
	for _, c := range claims {
		if c.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

// instanceIDs hands out the ids of new Pods: first those whose claims wait for a Pod, then new ones.
type instanceIDs struct {
	reusable  []string
	generator *claim.Generator
}

func (i *instanceIDs) next() string {
	if len(i.reusable) > 0 {
		id := i.reusable[0]
		i.reusable = i.reusable[1:]
		return id
	}
	return i.generator.Next()
}

// newIDs depends on nothing but what was seen, so that a pass that is repeated because the answer to a create was lost asks for the same
// Pod again instead of one more.
func (v *State) newIDs() *instanceIDs {
	used := v.usedIDs.Clone()
	for _, p := range v.release {
		used.Insert(claim.InstanceID(p, v.Set.Name))
	}
	for _, name := range v.Taken {
		// Ids have no dash, and end the names of both Pods and claims.
		used.Insert(name[strings.LastIndexByte(name, '-')+1:])
	}
	ids := &instanceIDs{}
	if v.Set.Spec.ScaleStrategy.EnablePVCReuse {
		ids.reusable = claim.Reusable(v.Claims, used)
	}
	for _, c := range v.Claims {
		used.Insert(c.Labels[keys.InstanceID])
	}
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(v.Set.UID)) // a hash does not fail
	for _, id := range slices.Sorted(maps.Keys(used)) {
		_, _ = seed.Write([]byte(id))
	}
	ids.generator = claim.NewIDs(int64(seed.Sum64()), used)
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
			chain = append(chain, plan.Action{Verb: plan.Create, Concern: plan.Scale, After: c, FailedEvent: eventFailedCreate})
		}
	}
	p := v.workload.NewPod(template, rev)
	p.Name = v.Set.Name + "-" + id
	p.Labels[keys.InstanceID] = id
	lifecycle.Enter(p, pub.LifecycleStatePreparingNormal, v.workload.Lifecycle, v.Now)
	pod.AddReadinessGates(p, pub.InPlaceUpdateReady, pub.KruisePodReady)
	claim.Mount(p, v.Set.Name, id, claimTemplates)
	return append(chain, plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: p,
		What:  "at revision " + rev.Name,
		Event: eventSuccessfulCreate, EventMessage: "succeed to create pod " + p.Name, FailedEvent: eventFailedCreate,
	}), nil
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
