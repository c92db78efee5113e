package cloneset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

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
		for _, c := range claim.Of(claim.InstanceID(p, v.Set.Name), v.Claims) {
			if c.DeletionTimestamp == nil && !isOwnedBy(c, p.UID) {
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
			Verb: plan.Delete, Concern: plan.Scale, Before: c, FailedEvent: eventFailedDelete,
			What: "delete claim", Why: "its Pod is gone and claims are not reused",
		})
	}
	for _, pair := range orphans.ToPod {
		b.Do(v.handOver(pair.Claim, pair.Pod, endOf(pair.Pod)))
	}
}

// handOver returns the write that makes a claim the Pod's own, with which it is then deleted.
func (v *State) handOver(c *corev1.PersistentVolumeClaim, p *corev1.Pod, why string) plan.Action {
	after := c.DeepCopy()
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == v.Set.UID })
	if !isOwnedBy(after, p.UID) {
		after.OwnerReferences = append(after.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID})
	}
	return plan.Action{
		Verb: plan.Update, Concern: plan.Scale, Before: c, After: after, FailedEvent: eventFailedUpdate,
		What: "claim goes with its Pod", Why: why,
	}
}

func isOwnedBy(object metav1.Object, uid types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

func endOf(p *corev1.Pod) string {
	if pod.IsFinished(p) {
		return "the Pod has ended"
	}
	return "the Pod is being deleted"
}
