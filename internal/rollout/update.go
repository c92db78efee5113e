package rollout

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/lifecycle"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Event reasons that workloads share. Wire: users' alerts and tools match them.
const (
	EventSuccessfulCreate           = "SuccessfulCreate"
	EventFailedCreate               = "FailedCreate"
	EventSuccessfulDelete           = "SuccessfulDelete"
	EventFailedDelete               = "FailedDelete"
	EventFailedUpdate               = "FailedUpdate"
	EventSuccessfulUpdatePodInPlace = "SuccessfulUpdatePodInPlace"
	EventFailedUpdatePodInPlace     = "FailedUpdatePodInPlace"
	eventCreatedImagePullJob        = "CreatedImagePullJob"
	eventFailedCreateImagePullJob   = "FailedCreateImagePullJob"
)

// Updater updates Pods in place to one revision. Each of their revisions is compared with it once.
type Updater struct {
	*Workload
	// GraceSeconds is how long a Pod is out of service before its containers change.
	GraceSeconds int32
	target       *appsv1.ControllerRevision
	options      inplace.Options
	changes      map[string]change
	// planned is how many Pods are changed.
	planned int
}

// The most Pods that one pass plans to create, and to update in place. A pass ends before that where the API server is slow; a fast one
// stores about so many in the time of a pass. To plan thousands that no pass gets to takes longer than to write those that it does. A Pod
// to update takes more to plan than one to create.
const (
	CreateBurst = 500
	UpdateBurst = 200
)

// change is the way from one revision to the target in place, or, where refusal is not empty, why there is none.
type change struct {
	inplace.Change
	refusal string
	// field is the field of the template that the refusal is about.
	field string
}

// UpdaterTo returns the updater to a revision; the options say which changes can go in place.
func (w *Workload) UpdaterTo(target *appsv1.ControllerRevision, options inplace.Options) *Updater {
	return &Updater{Workload: w, target: target, options: options, changes: map[string]change{}}
}

// Refusal says why the Pod can't be updated in place; empty if it can.
func (u *Updater) Refusal(p *corev1.Pod) string { return u.changeOf(p).refusal }

// RefusedField returns the field of the template for which the Pod can't be updated in place; empty if it can.
func (u *Updater) RefusedField(p *corev1.Pod) string { return u.changeOf(p).field }

func (u *Updater) changeOf(p *corev1.Pod) change {
	from := u.History.Of(p)
	if from == nil {
		return change{refusal: "its revision " + p.Labels[appsv1.ControllerRevisionHashLabelKey] + " is not stored any more",
			field: "revision"}
	}
	if u.target.Name == u.History.Update.Name && u.History.IsUpdate(p) {
		return change{Change: u.stale(p)}
	}
	c, known := u.changes[from.Name]
	if !known {
		var refusal *inplace.Refusal
		if c.Change, refusal = inplace.Diff(from, u.target, u.options); refusal != nil {
			c.refusal, c.field = refusal.Error(), refusal.Field()
		}
		u.changes[from.Name] = c
	}
	return c
}

// HoldRefused tells of a Pod that is to be updated in place only, and can't be.
func (u *Updater) HoldRefused(p *corev1.Pod, refusal string, b *plan.Builder) {
	b.Hold(plan.Hold{
		Code: reason.InPlaceRefused, Name: p.Name, Why: fmt.Sprintf("InPlaceOnly, but %s can't go to %s in place: %s", p.Name,
			u.target.Name, refusal),
		Event: EventFailedUpdatePodInPlace, Failure: plan.Rollout,
	})
}

// Update begins an update in place, or has the Pod wait: for its inPlaceUpdate hook, for an update of its sidecars, so that both do not
// restart containers at once, or, after UpdateBurst others, for the next pass.
func (u *Updater) Update(p *corev1.Pod, why string, b *plan.Builder) {
	u.update(p, u.changeOf(p).Change, why, b)
}

func (u *Updater) update(p *corev1.Pod, c inplace.Change, why string, b *plan.Builder) {
	if unfinished, wait := sidecar.RecentlyUpdating(p, u.Now); unfinished != "" {
		b.Hold(plan.Hold{Code: reason.Held, Name: p.Name, Why: unfinished})
		b.Recheck(wait, "an update of sidecars is waited for no longer")
		return
	}
	state, mayStart := lifecycle.BeforeUpdate(p, u.Lifecycle)
	if !mayStart {
		u.awaitUpdateHook(p, state, why, b)
		return
	}
	if u.planned >= UpdateBurst {
		b.More()
		return
	}
	begun := u.begin(p, c, state)
	advanced := begun.DeepCopy()
	if step := inplace.Advance(advanced, u.InPlace, u.Now); step.Wait > 0 {
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
	last.Method = plan.InPlace
	last.Event = EventSuccessfulUpdatePodInPlace
	last.EventMessage = fmt.Sprintf("successfully update pod %s in-place", p.Name)
	if !u.Bare {
		last.EventMessage += fmt.Sprintf("(revision %s)", u.target.Name)
	}
	b.Do(chain...)
	u.planned++
}

// awaitUpdateHook has the Pod wait for its inPlaceUpdate hook, in the state that is for that.
func (u *Updater) awaitUpdateHook(p *corev1.Pod, state pub.LifecycleStateType, why string, b *plan.Builder) {
	if state == pod.State(p) {
		b.Hold(plan.Hold{Code: reason.WaitLifecycleHook, Name: p.Name, Why: "its inPlaceUpdate hook holds it"})
		return
	}
	if u.planned >= UpdateBurst {
		b.More()
		return
	}
	waits := p.DeepCopy()
	lifecycle.Enter(waits, state, u.Lifecycle, u.Now)
	chain := PodWrites(plan.Rollout, p, waits)
	chain[0].What, chain[0].Why = "waits for its inPlaceUpdate hook", why
	b.Do(chain...)
	u.planned++
}

// begin returns the Pod as it is once its update has begun. A change that restarts nothing needs no grace period.
func (u *Updater) begin(p *corev1.Pod, c inplace.Change, state pub.LifecycleStateType) *corev1.Pod {
	begun := p.DeepCopy()
	if c.TouchesContainers() && !u.Bare || u.Lifecycle != nil && u.Lifecycle.InPlaceUpdate != nil {
		lifecycle.Enter(begun, state, u.Lifecycle, u.Now)
	}
	target := inplace.Target{Revision: u.target.Name, Labels: u.RevisionLabels(u.target), Now: u.Now}
	if c.TouchesContainers() {
		target.GraceSeconds = u.GraceSeconds
	}
	if u.Bare {
		target.Revision = revision.ShortHash(u.target.Name)
	}
	inplace.Begin(begun, c, target)
	return begun
}

// isSettled reports whether there is plainly nothing in flight on the Pod, as on nearly every Pod of a large workload.
func (w *Workload) isSettled(p *corev1.Pod) bool {
	_, hashed := p.Labels[keys.PodTemplateHash]
	state := pod.State(p)
	return (state == pub.LifecycleStateNormal || state == pub.LifecycleStatePreparingDelete) && (hashed || !w.TemplateHash) &&
		!inplace.NeedsFinish(p) && !inplace.Pending(p) && !lifecycle.NeedsFirstReady(p)
}

// Settle finishes what is in flight on the Pod: a grace period, the next batch of containers, readiness, the lifecycle state, a missing
// label. atTarget says that no update wants to move the Pod: one that still waits for its hook then goes back into service.
func (w *Workload) Settle(m *Member, atTarget bool, b *plan.Builder) {
	p := m.Pod
	if w.isSettled(p) {
		return
	}
	after := p.DeepCopy()
	did := w.advance(p, after, b)
	if state, moves := lifecycle.Next(after, lifecycle.Facts{
		Lifecycle:  w.Lifecycle,
		UpdateDone: did.done,
		AtTarget:   atTarget,
	}); moves && pod.IsScheduled(after) {
		lifecycle.Enter(after, state, w.Lifecycle, w.Now)
		did.add("%s", state)
	}
	if lifecycle.NeedsFirstReady(after) && pod.IsScheduled(after) {
		lifecycle.FirstReady(after, w.Now)
		did.add("ready by its hooks")
	}
	if w.TemplateHash && after.Labels[keys.PodTemplateHash] == "" && after.Labels[appsv1.ControllerRevisionHashLabelKey] != "" {
		after.Labels[keys.PodTemplateHash] = revision.ShortHash(after.Labels[appsv1.ControllerRevisionHashLabelKey])
		did.add("label %s", keys.PodTemplateHash)
	}
	if did.text == "" {
		return
	}
	while := firstReadiness(p, after, w.Now)
	chain := PodWrites(plan.Settle, p, after)
	if len(chain) == 0 {
		return
	}
	chain[0].What, chain[0].Why, chain[0].While = did.text, "in flight", while
	b.Do(chain...)
	m.Settled = true
}

// firstReadiness returns what the write is conditional on that lets a new Pod become ready; empty if it is another write. The kubelet
// writes to the Pod at the same moment, which does not matter; whether somebody has taken the Pod further does. That shows in the lifecycle
// state, where the write moves it along, or else in the time of it, which the write renews.
func firstReadiness(before, after *corev1.Pod, now time.Time) string {
	switch {
	case !isNew(before) || len(after.Status.Conditions) == len(before.Status.Conditions):
		return ""
	case after.Labels[keys.LifecycleState] != before.Labels[keys.LifecycleState]:
		return keys.LifecycleState
	}
	lifecycle.Renew(after, now)
	return keys.LifecycleTimestamp
}

// isNew reports whether the Pod has never been updated in place, and no readiness gate of ours has spoken yet.
func isNew(p *corev1.Pod) bool {
	if _, updated := p.Annotations[keys.InPlaceUpdateState]; updated || pod.Condition(p, pub.InPlaceUpdateReady) != nil {
		return false
	}
	state := pod.State(p)
	return state == pub.LifecycleStatePreparingNormal || state == pub.LifecycleStateNormal
}

// progress is what was done to a Pod, in words, and whether no in-place update is under way on it.
type progress struct {
	text string
	done bool
}

func (p *progress) add(format string, args ...any) {
	if p.text != "" {
		p.text += ", "
	}
	p.text += fmt.Sprintf(format, args...)
}

// advance takes an in-place update one step further, or turns a Pod ready on which none is under way.
func (w *Workload) advance(before, after *corev1.Pod, b *plan.Builder) progress {
	var did progress
	step := inplace.Advance(after, w.InPlace, w.Now)
	if step.Problem != nil {
		b.Hold(plan.Hold{Code: reason.InPlaceRefused, Name: before.Name, Why: step.Problem.Error(), Event: EventFailedUpdatePodInPlace,
			Failure: plan.Rollout})
	}
	if step.Wait > 0 {
		b.Recheck(step.Wait, fmt.Sprintf("the grace period of %s is over", before.Name))
		b.Hold(plan.Hold{Code: reason.WaitGrace, Name: before.Name,
			Why: "gracePeriodSeconds: its image changes once it has been NotReady for that long"})
	}
	if step.Changed {
		did.add("in place: next containers")
		return did
	}
	if inplace.Pending(after) {
		return did
	}
	verdict := inplace.Progress(after, w.InPlace)
	did.done = verdict.Done
	switch {
	case !verdict.Done:
		b.Hold(plan.Hold{Code: reason.WaitReady, Name: before.Name, Why: verdict.Why})
	case inplace.NeedsFinish(after) && pod.IsScheduled(after):
		inplace.Finish(after, w.Now)
		did.add("ready by its update")
	}
	return did
}

// PodWrites returns the writes that take a Pod through the given versions, each as few as the API server allows: labels and annotations
// ride on a status write where there is one, and resources go by their own subresource.
func PodWrites(concern plan.Concern, versions ...*corev1.Pod) plan.Chain {
	var chain plan.Chain
	write := func(verb plan.Verb, before, after *corev1.Pod) {
		chain = append(chain, plan.Action{Verb: verb, Concern: concern, Before: before, After: after})
	}
	from := versions[0]
	for i := 1; i < len(versions); i++ {
		to := versions[i]
		status := !equality.Semantic.DeepEqual(from.Status, to.Status)
		spec := !equality.Semantic.DeepEqual(from.Spec, to.Spec)
		if !status && !spec && i+1 < len(versions) && withResources(to, versions[i+1]) == nil {
			// Nothing here that could not ride on the next write. A resize takes no metadata along: would it be written first and the
			// kubelet's answer come before the record of it, nothing on the Pod would tell that it is to be waited for.
			continue
		}
		resized := withResources(from, to)
		if spec && resized != nil {
			write(plan.Resize, from, resized)
			from = resized
			spec = !equality.Semantic.DeepEqual(from.Spec, to.Spec)
		}
		switch {
		case status && spec:
			// Labels and annotations come with the spec that they speak of: were they written first, and the spec never, they would tell of
			// an update that did not happen.
			withStatus := from.DeepCopy()
			withStatus.Status = *to.Status.DeepCopy()
			write(plan.UpdateStatus, from, withStatus)
			write(plan.Update, withStatus, to)
		case status:
			write(plan.UpdateStatus, from, to)
		case spec || !sameMetadata(from, to):
			write(plan.Update, from, to)
		}
		from = to
	}
	return chain
}

// withResources returns from with the containers' resources of to, or nil where they are the same.
func withResources(from, to *corev1.Pod) *corev1.Pod {
	var out *corev1.Pod
	for i := range from.Spec.Containers {
		if i >= len(to.Spec.Containers) || equality.Semantic.DeepEqual(from.Spec.Containers[i].Resources, to.Spec.Containers[i].Resources) {
			continue
		}
		if out == nil {
			out = from.DeepCopy()
		}
		out.Spec.Containers[i].Resources = *to.Spec.Containers[i].Resources.DeepCopy()
	}
	return out
}

func sameMetadata(a, b *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Finalizers, b.Finalizers) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
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
		b.Hold(plan.Hold{Code: reason.WaitLifecycleHook, Name: m.Pod.Name, Why: "its preDelete hook holds it"})
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
