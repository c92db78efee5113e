package rollout

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
)

// Adopt returns the write by which a workload takes over a Pod that nobody controls, such as one that a workload of Kubernetes has left behind.
func Adopt(p *corev1.Pod, owner metav1.OwnerReference) plan.Action {
	after := p.DeepCopy()
	after.OwnerReferences = append(after.OwnerReferences, owner)
	return plan.Action{
		Verb: plan.Update, Concern: plan.Scale, Before: p, After: after,
		What: "adopt", Why: fmt.Sprintf("it has the labels of a Pod of this %s, and no controller", owner.Kind),
	}
}

// Release returns the write by which a workload lets go of a Pod that is its own no more.
func Release(p *corev1.Pod, owner metav1.OwnerReference, why string) plan.Action {
	after := p.DeepCopy()
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID })
	return plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: p, After: after, What: "release", Why: why}
}

// ComeBack returns the writes that take a Pod back into service, in the state that it begins anew with: it waits for its preDelete hook, and is wanted
// again.
func (w Workload) ComeBack(p *corev1.Pod, state pub.LifecycleStateType) plan.Chain {
	after := p.DeepCopy()
	lifecycle.Enter(after, state, w.Lifecycle, w.Now)
	chain := PodWrites(plan.Scale, p, after)
	chain[0].What, chain[0].Why = "back into service", "it is wanted again before its preDelete hook let it go"
	return chain
}

// AwaitHook reports whether the Pod has to wait for its preDelete hook before it can be deleted, and whether it is told so by this plan; that takes a
// write, once.
func (w Workload) AwaitHook(p *corev1.Pod, concern plan.Concern, why string, b *plan.Builder) (waits, told bool) {
	chain := w.PrepareDelete(p, concern)
	switch {
	case chain == nil:
		return false, false
	case len(chain) == 0:
		b.Hold(plan.Hold{Name: p.Name, Why: "its preDelete hook holds it"})
		return true, false
	}
	chain[0].Why = why
	b.Do(chain...)
	return true, true
}

// Rest says whether a rollout moves Pods by itself.
type Rest struct {
	// OnDelete means that the user updates Pods, by deleting them; Paused that the user has stopped the update.
	OnDelete, Paused bool
}

// Why says why no Pod is moved; empty where Pods are.
func (r Rest) Why() string {
	switch {
	case r.OnDelete:
		return "type OnDelete updates a Pod when the user deletes it"
	case r.Paused:
		return "the update is paused"
	}
	return ""
}

// Refused is what is told of a Pod that is to be updated in place only, and can't be.
func Refused(p *corev1.Pod, target *appsv1.ControllerRevision, refusal string) plan.Hold {
	return plan.Hold{
		Name: p.Name, Why: fmt.Sprintf("InPlaceOnly, but %s can't go to %s in place: %s", p.Name, target.Name, refusal),
		Event: EventFailedUpdatePodInPlace, Failure: plan.Rollout,
	}
}

// Awaited is the Pod that becomes available first by time alone; none at first.
type Awaited struct {
	wait time.Duration
	name string
}

// Note takes another Pod into account, which becomes available after a time; one that does not by time alone has none.
func (a *Awaited) Note(p *corev1.Pod, wait time.Duration) {
	if wait > 0 && (a.wait == 0 || wait < a.wait) {
		a.wait, a.name = wait, p.Name
	}
}

// Recheck has the plan look again when the Pod is available.
func (a Awaited) Recheck(minReadySeconds int32, b *plan.Builder) {
	b.Recheck(a.wait, fmt.Sprintf("%s becomes available (minReadySeconds %d)", a.name, minReadySeconds))
}
