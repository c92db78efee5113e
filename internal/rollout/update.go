package rollout

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Update is an update of one Pod in place.
type Update struct {
	Pod *corev1.Pod
	// Target is the revision to bring it to, and Change the way there.
	Target *appsv1.ControllerRevision
	Change inplace.Change
	// GraceSeconds is how long the Pod is out of service before its containers change.
	GraceSeconds int32
	Why          string
}

// UpdateInPlace begins an update in place, or has the Pod wait: for its inPlaceUpdate hook, or for an update of its sidecars, so that both do not
// restart containers at once.
func (w Workload) UpdateInPlace(u Update, b *plan.Builder) {
	if why, wait := sidecar.Unfinished(u.Pod, w.Now); why != "" {
		b.Hold(plan.Hold{Name: u.Pod.Name, Why: why})
		b.Recheck(wait, "an update of sidecars is waited for no longer")
		return
	}
	state, mayStart := lifecycle.BeforeUpdate(u.Pod, w.Lifecycle)
	begun := u.Pod.DeepCopy()
	if !mayStart {
		if state == pod.State(u.Pod) {
			b.Hold(plan.Hold{Name: u.Pod.Name, Why: "its inPlaceUpdate hook holds it"})
			return
		}
		lifecycle.Enter(begun, state, w.Lifecycle, w.Now)
		chain := PodWrites(plan.Rollout, u.Pod, begun)
		chain[0].What, chain[0].Why = "waits for its inPlaceUpdate hook", u.Why
		b.Do(chain...)
		return
	}
	if u.Change.TouchesContainers() && !w.Bare || w.Lifecycle != nil && w.Lifecycle.InPlaceUpdate != nil {
		lifecycle.Enter(begun, state, w.Lifecycle, w.Now)
	}
	grace := u.GraceSeconds
	if !u.Change.TouchesContainers() {
		// A change that restarts nothing need not wait.
		grace = 0
	}
	name := u.Target.Name
	if w.Bare {
		name = revision.ShortHash(name)
	}
	inplace.Begin(begun, u.Change, inplace.Target{
		Revision: name, Labels: w.RevisionLabels(u.Target), GraceSeconds: grace, Now: w.Now,
	})
	advanced := begun.DeepCopy()
	step := inplace.Advance(advanced, w.InPlace, w.Now)
	if step.Wait > 0 {
		b.Recheck(step.Wait, fmt.Sprintf("the grace period of %s is over", u.Pod.Name))
	}
	chain := PodWrites(plan.Rollout, u.Pod, begun, advanced)
	if len(chain) == 0 {
		return
	}
	chain[0].What, chain[0].Why = "in place: "+u.Change.String(), u.Why
	for i := range chain {
		chain[i].FailedEvent = EventFailedUpdatePodInPlace
	}
	last := &chain[len(chain)-1]
	last.Event = EventSuccessfulUpdatePodInPlace
	last.EventMessage = fmt.Sprintf("successfully update pod %s in-place(revision %s)", u.Pod.Name, u.Target.Name)
	if w.Bare {
		last.EventMessage = fmt.Sprintf("successfully update pod %s in-place", u.Pod.Name)
	}
	b.Do(chain...)
}

// PrepareDelete returns nil when no preDelete hook holds the Pod, an empty chain when it waits for the hook already, and else the writes that
// have it wait.
func (w Workload) PrepareDelete(p *corev1.Pod, concern plan.Concern) plan.Chain {
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

// Start makes a new Pod one that the other steps can move: with the labels of its revision, its first lifecycle state and the readiness gates
// by which it is taken out of service.
func (w Workload) Start(p *corev1.Pod, rev *appsv1.ControllerRevision) {
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	maps.Copy(p.Labels, w.RevisionLabels(rev))
	lifecycle.Enter(p, pub.LifecycleStatePreparingNormal, w.Lifecycle, w.Now)
	pod.AddReadinessGates(p, pub.InPlaceUpdateReady, pub.KruisePodReady)
}

// RevisionLabels are the labels by which a Pod says which revision it is at.
func (w Workload) RevisionLabels(rev *appsv1.ControllerRevision) map[string]string {
	labels := map[string]string{appsv1.ControllerRevisionHashLabelKey: rev.Name}
	if w.TemplateHash {
		labels[keys.PodTemplateHash] = revision.ShortHash(rev.Name)
	}
	if w.ShortHash {
		labels[appsv1.ControllerRevisionHashLabelKey] = revision.ShortHash(rev.Name)
	}
	return labels
}
