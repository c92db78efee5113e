package rollout

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Updater updates Pods in place to one revision. Each of their revisions is compared with it once.
type Updater struct {
	*Workload
	// GraceSeconds is how long a Pod is out of service before its containers change.
	GraceSeconds int32
	target       *appsv1.ControllerRevision
	options      inplace.Options
	changes      map[string]change
}

// change is the way from one revision to the target in place, or, where refusal is not empty, why there is none.
type change struct {
	inplace.Change
	refusal string
}

// UpdaterTo returns the updater to a revision; the options say which changes can go in place.
func (w *Workload) UpdaterTo(target *appsv1.ControllerRevision, options inplace.Options) *Updater {
	return &Updater{Workload: w, target: target, options: options, changes: map[string]change{}}
}

// Refusal says why the Pod can't be updated in place; empty if it can.
func (u *Updater) Refusal(p *corev1.Pod) string { return u.changeOf(p).refusal }

func (u *Updater) changeOf(p *corev1.Pod) change {
	from := u.History.Of(p)
	if from == nil {
		return change{refusal: "its revision " + p.Labels[appsv1.ControllerRevisionHashLabelKey] + " is not stored any more"}
	}
	c, known := u.changes[from.Name]
	if !known {
		var refusal *inplace.Refusal
		if c.Change, refusal = inplace.Diff(from, u.target, u.options); refusal != nil {
			c.refusal = refusal.Error()
		}
		u.changes[from.Name] = c
	}
	return c
}

// HoldRefused tells of a Pod that is to be updated in place only, and can't be.
func (u *Updater) HoldRefused(p *corev1.Pod, refusal string, b *plan.Builder) {
	b.Hold(plan.Hold{
		Name: p.Name, Why: fmt.Sprintf("InPlaceOnly, but %s can't go to %s in place: %s", p.Name, u.target.Name, refusal),
		Event: EventFailedUpdatePodInPlace, Failure: plan.Rollout,
	})
}

// Update begins an update in place, or has the Pod wait: for its inPlaceUpdate hook, or for an update of its sidecars, so that both do not
// restart containers at once.
func (u *Updater) Update(p *corev1.Pod, why string, b *plan.Builder) {
	u.update(p, u.changeOf(p).Change, why, b)
}

func (u *Updater) update(p *corev1.Pod, c inplace.Change, why string, b *plan.Builder) {
	if unfinished, wait := sidecar.RecentlyUpdating(p, u.Now); unfinished != "" {
		b.Hold(plan.Hold{Name: p.Name, Why: unfinished})
		b.Recheck(wait, "an update of sidecars is waited for no longer")
		return
	}
	state, mayStart := lifecycle.BeforeUpdate(p, u.Lifecycle)
	begun := p.DeepCopy()
	if !mayStart {
		if state == pod.State(p) {
			b.Hold(plan.Hold{Name: p.Name, Why: "its inPlaceUpdate hook holds it"})
			return
		}
		lifecycle.Enter(begun, state, u.Lifecycle, u.Now)
		chain := PodWrites(plan.Rollout, p, begun)
		chain[0].What, chain[0].Why = "waits for its inPlaceUpdate hook", why
		b.Do(chain...)
		return
	}
	if c.TouchesContainers() && !u.Bare || u.Lifecycle != nil && u.Lifecycle.InPlaceUpdate != nil {
		lifecycle.Enter(begun, state, u.Lifecycle, u.Now)
	}
	grace := u.GraceSeconds
	if !c.TouchesContainers() {
		// A change that restarts nothing need not wait.
		grace = 0
	}
	name := u.target.Name
	if u.Bare {
		name = revision.ShortHash(name)
	}
	inplace.Begin(begun, c, inplace.Target{
		Revision: name, Labels: u.RevisionLabels(u.target), GraceSeconds: grace, Now: u.Now,
	})
	advanced := begun.DeepCopy()
	step := inplace.Advance(advanced, u.InPlace, u.Now)
	if step.Wait > 0 {
		b.Recheck(step.Wait, fmt.Sprintf("the grace period of %s is over", p.Name))
	}
	chain := PodWrites(plan.Rollout, p, begun, advanced)
	if len(chain) == 0 {
		return
	}
	chain[0].What, chain[0].Why = "in place: "+c.String(), why
	for i := range chain {
		chain[i].FailedEvent = EventFailedUpdatePodInPlace
	}
	last := &chain[len(chain)-1]
	last.Event = EventSuccessfulUpdatePodInPlace
	last.EventMessage = fmt.Sprintf("successfully update pod %s in-place(revision %s)", p.Name, u.target.Name)
	if u.Bare {
		last.EventMessage = fmt.Sprintf("successfully update pod %s in-place", p.Name)
	}
	b.Do(chain...)
}
