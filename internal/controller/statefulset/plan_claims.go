package statefulset

import (
	"fmt"
	"iter"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/ordinal"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// retention says when claims are deleted.
func (v *State) retention() claim.Retention {
	policy := v.Set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil || !v.Options.ClaimRetention {
		return claim.Retention{}
	}
	return claim.Retention{
		WithWorkload: policy.WhenDeleted == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
		WithPod:      policy.WhenScaled == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
}

func (v *State) newClaim(template *corev1.PersistentVolumeClaim, n int32) *corev1.PersistentVolumeClaim {
	c := claim.New(claim.Owner{
		Name: v.Set.Name, Namespace: v.Set.Namespace, SelectorMatchLabels: v.Set.Spec.Selector.MatchLabels,
	}, strconv.Itoa(int(n)), template)
	if v.retention().DeletedWith(true) == claim.DeletedWithWorkload {
		c.OwnerReferences = []metav1.OwnerReference{v.workload.Owner()}
	}
	return c
}

func (v *State) createClaim(c *corev1.PersistentVolumeClaim, podName string) plan.Action {
	return plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: c, Event: rollout.EventSuccessfulCreate, FailedEvent: rollout.EventFailedCreate,
		EventMessage: fmt.Sprintf("create Claim %s Pod %s in StatefulSet %s success", c.Name, podName, v.Set.Name),
	}
}

// claimsOf yields the claims of the Pod with an ordinal, but for those that are being deleted, each with its template.
func (v *State) claimsOf(n int32) iter.Seq2[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim] {
	return func(yield func(c, template *corev1.PersistentVolumeClaim) bool) {
		for i := range v.Set.Spec.VolumeClaimTemplates {
			template := &v.Set.Spec.VolumeClaimTemplates[i]
			c := v.claims[claim.Name(template.Name, v.Set.Name, strconv.Itoa(int(n)))]
			if c != nil && c.DeletionTimestamp == nil && !yield(c, template) {
				return
			}
		}
	}
}

// keepClaims tells every claim of a Pod that is there to stay what it goes along with when that is deleted. The garbage collector does the
// rest.
func (v *State) keepClaims(b *plan.Builder) {
	if !v.Options.ClaimRetention {
		return
	}
	keep := func(m *member, wanted bool) {
		if m == nil || m.Leaving {
			return
		}
		for c := range v.claimsOf(m.ordinal) {
			if action := v.keepClaim(c, m.Pod, wanted); action != nil {
				b.Do(*action)
			}
			if _, _, foreign := v.ownersFor(c, m.Pod, wanted); foreign && v.retention() != (claim.Retention{}) {
				b.Hold(plan.Hold{
					Code: reason.Conflict, Name: c.Name, Why: fmt.Sprintf("claim %s has another controller, and so is kept whatever "+
						"happens", c.Name),
					Event: eventConflictingController,
				})
			}
		}
	}
	for _, s := range v.slots {
		keep(s.member, true)
	}
	for _, m := range v.surplus {
		if !m.Settled {
			keep(m, false)
		}
	}
}

// claimsBefore returns the writes that the deletion of a Pod has to wait for.
func (v *State) claimsBefore(m *member) plan.Chain {
	var chain plan.Chain
	if !v.Options.ClaimRetention || !m.surplus {
		return nil
	}
	for c := range v.claimsOf(m.ordinal) {
		if action := v.keepClaim(c, m.Pod, false); action != nil {
			chain = append(chain, *action)
		}
	}
	return chain
}

// owners are the two that a claim may have by our doing. There is no Pod where p is nil.
func (v *State) owners(c *corev1.PersistentVolumeClaim, p *corev1.Pod) claim.References {
	yes := true
	_, n, _ := ordinal.Split(c.Name)
	by := claim.References{Workload: v.workload.Owner(), Pod: metav1.OwnerReference{
		APIVersion: "v1", Kind: "Pod", Name: ordinal.PodName(v.Set.Name, n), Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	if p != nil {
		by.Pod.UID = p.UID
	}
	return by
}

// isGarbage reports whether a claim of a slot without a Pod is about to be deleted. Where claims do not go along with Pods any more,
// one that was to is kept still.
func (v *State) isGarbage(c *corev1.PersistentVolumeClaim) bool {
	by := v.owners(c, nil)
	if !v.retention().WithPod && v.Options.ClaimRetention {
		by.Pod = metav1.OwnerReference{}
	}
	return claim.IsGarbage(c.OwnerReferences, by)
}

func (v *State) ownersFor(
	c *corev1.PersistentVolumeClaim, p *corev1.Pod, wanted bool,
) (want []metav1.OwnerReference, changed, foreign bool) {
	return claim.OwnersFor(c.OwnerReferences, v.retention().DeletedWith(wanted), v.owners(c, p))
}

// keepClaim returns the write that has a claim go along with what its Pod's place asks for, or nil where it does already. There is no Pod
// where p is nil.
func (v *State) keepClaim(c *corev1.PersistentVolumeClaim, p *corev1.Pod, wanted bool) *plan.Action {
	if !v.Options.ClaimRetention {
		return nil
	}
	references, changed, _ := v.ownersFor(c, p, wanted)
	if !changed {
		return nil
	}
	after := c.DeepCopy()
	after.OwnerReferences = references
	what := "claim is kept"
	switch v.retention().DeletedWith(wanted) {
	case claim.DeletedWithWorkload:
		what = "claim goes with the StatefulSet"
	case claim.DeletedWithPod:
		what = "claim goes with its Pod"
	}
	return &plan.Action{
		Verb: plan.Update, Concern: plan.Scale, Before: c, After: after, FailedEvent: rollout.EventFailedUpdate,
		What: what, Why: "persistentVolumeClaimRetentionPolicy",
	}
}

// resizes reports whether claims grow in the course of an update.
func resizes(set *v1beta1.StatefulSet, o Options) bool {
	return o.ClaimResize && set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

// waitsForClaims reports whether a claim of the slot is still growing.
func (v *State) waitsForClaims(s *slot) bool {
	if !resizes(v.Set, v.Options) || s.member == nil {
		return false
	}
	for c, template := range v.claimsOf(s.ordinal) {
		if claim.IsCompatible(c, template) && !claim.IsReady(c) {
			return true
		}
	}
	return false
}

// needsResize reports whether a claim of the slot is smaller than its template.
func (v *State) needsResize(s *slot) bool {
	if !resizes(v.Set, v.Options) {
		return false
	}
	for c, template := range v.claimsOf(s.ordinal) {
		if !claim.IsCompatible(c, template) {
			return true
		}
	}
	return false
}

// growth is what stands between a slot's claims and their templates.
type growth int

const (
	grown growth = iota
	growing
	stuck
)

// resize has the slot's claims grow, and says how far they are.
func (v *State) resize(s *slot, b *plan.Builder) growth {
	if !resizes(v.Set, v.Options) {
		return grown
	}
	out := grown
	for c, template := range v.claimsOf(s.ordinal) {
		if claim.IsExpanded(c, template) {
			continue
		}
		out = max(out, growing)
		if claim.IsCompatible(c, template) {
			b.Hold(plan.Hold{Code: reason.WaitVolumeClaim, Name: s.name, Why: fmt.Sprintf("its claim %s is growing", c.Name)})
			continue
		}
		if why, event := v.whyStuck(c, template); why != "" {
			why = fmt.Sprintf("claim %s can't become like its template: %s", c.Name, why)
			b.Hold(plan.Hold{Code: reason.WaitVolumeClaim, Name: s.name, Why: why, Event: event, Failure: plan.Rollout})
			return stuck
		}
		b.Do(v.grow(c, template))
	}
	return out
}

func (v *State) whyStuck(c, template *corev1.PersistentVolumeClaim) (why, event string) {
	if !claim.HasShape(c, template) {
		return "more than its size differs", eventFailedUpdatePVC
	}
	return v.FixedClasses[classOf(c)], eventFailedResize
}

func (v *State) grow(c, template *corev1.PersistentVolumeClaim) plan.Action {
	after := c.DeepCopy()
	template.Spec.Resources.DeepCopyInto(&after.Spec.Resources)
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[keys.OwnedByStatefulSet] = v.Set.Name
	size := template.Spec.Resources.Requests[corev1.ResourceStorage]
	return plan.Action{
		Verb: plan.Update, Concern: plan.Rollout, Before: c, After: after,
		What: "claim grows to " + size.String(), Why: "volumeClaimUpdateStrategy OnPodRollingUpdate", FailedEvent: eventFailedResize,
		Event: eventSuccessfulResize, EventMessage: fmt.Sprintf("resize Claim %s in StatefulSet %s successful", c.Name, v.Set.Name),
	}
}
