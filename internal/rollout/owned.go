package rollout

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// NewPod returns a Pod of a template with the labels of its revision. It has no name yet.
func (w *Workload) NewPod(template *corev1.PodTemplateSpec, rev *appsv1.ControllerRevision) *corev1.Pod {
	p := pod.New(template, w.Object, w.Kind)
	maps.Copy(p.Labels, w.RevisionLabels(rev))
	return p
}

// CreatePod returns the write that creates a Pod at a revision; message is that of its event.
func CreatePod(p *corev1.Pod, rev *appsv1.ControllerRevision, message string) plan.Action {
	return plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: p, What: "at revision " + rev.Name,
		Event: EventSuccessfulCreate, EventMessage: message, FailedEvent: EventFailedCreate,
	}
}

// RevisionLabels are the labels by which a Pod says which revision it is at.
func (w *Workload) RevisionLabels(rev *appsv1.ControllerRevision) map[string]string {
	labels := map[string]string{appsv1.ControllerRevisionHashLabelKey: rev.Name}
	if w.TemplateHash {
		labels[keys.PodTemplateHash] = revision.ShortHash(rev.Name)
	}
	if w.ShortHash {
		labels[appsv1.ControllerRevisionHashLabelKey] = revision.ShortHash(rev.Name)
	}
	return labels
}

// Adopt returns the write by which the workload becomes the controller of a Pod that has none, such as one that a workload of
// Kubernetes has left behind.
func (w *Workload) Adopt(p *corev1.Pod) plan.Action {
	after := p.DeepCopy()
	after.OwnerReferences = append(after.OwnerReferences, w.Owner())
	return plan.Action{
		Verb: plan.Update, Concern: plan.Scale, Before: p, After: after,
		What: "adopt", Why: fmt.Sprintf("it has the labels of a Pod of this %s, and no controller", w.Kind.Kind),
	}
}

// Release returns the write that takes the workload's reference off a Pod.
func (w *Workload) Release(p *corev1.Pod, why string) plan.Action {
	after := p.DeepCopy()
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == w.Object.GetUID() })
	return plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: p, After: after, What: "release", Why: why}
}

// CancelDeletion plans the writes that take a Pod back into service, in a state, which waits for its preDelete hook and is wanted again.
func (w *Workload) CancelDeletion(m *Member, state pub.LifecycleStateType, b *plan.Builder) {
	after := m.Pod.DeepCopy()
	lifecycle.Enter(after, state, w.Lifecycle, w.Now)
	chain := PodWrites(plan.Scale, m.Pod, after)
	chain[0].What, chain[0].Why = "back into service", "it is wanted again before its preDelete hook let it go"
	b.Do(chain...)
	m.Settled = true
}

// AwaitHook reports whether the Pod has to wait for its preDelete hook before it can be deleted. It plans the write that has it wait, once.
func (w *Workload) AwaitHook(m *Member, concern plan.Concern, why string, b *plan.Builder) bool {
	chain := w.PrepareDelete(m.Pod, concern)
	switch {
	case chain == nil:
		return false
	case len(chain) == 0:
		b.Hold(plan.Hold{Name: m.Pod.Name, Why: "its preDelete hook holds it"})
		return true
	}
	chain[0].Why = why
	b.Do(chain...)
	m.Settled = true
	return true
}

// PrepareDelete returns nil when no preDelete hook holds the Pod, an empty chain when it waits for the hook already, and else the writes
// that have it wait.
func (w *Workload) PrepareDelete(p *corev1.Pod, concern plan.Concern) plan.Chain {
	if w.Lifecycle == nil || !lifecycle.Hooked(p, w.Lifecycle.PreDelete) {
		return nil
	}
	if pod.State(p) == pub.LifecycleStatePreparingDelete {
		return plan.Chain{}
	}
	after := p.DeepCopy()
	lifecycle.Enter(after, pub.LifecycleStatePreparingDelete, w.Lifecycle, w.Now)
	chain := PodWrites(concern, p, after)
	chain[0].What = "waits for its preDelete hook"
	return chain
}
