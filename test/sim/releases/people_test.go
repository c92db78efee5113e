package releases

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

var (
	rolloutKind = v1beta1.GroupVersion.WithKind("Rollout")
	batchKind   = v1beta1.GroupVersion.WithKind("BatchRelease")
)

// people are users with a Rollout, and the webhook that answers to what they write.
type people struct {
	promises.User
	// ref is the workload, style says how it is released.
	ref   v1beta1.WorkloadReference
	style v1beta1.RollingStyle
	// leads says that the Rollout leads traffic. Then nobody takes its finalizer away: only the Rollout knows what is to be restored.
	leads bool
	// keepsFinalizer says that nobody takes it away for another reason: of the workload's kind nobody looks for what that leaves behind.
	keepsFinalizer bool
	// forces says that somebody takes it away in the end, and deletes the Rollout.
	forces bool
}

func (p people) create(object client.Object) {
	_, _ = p.Cluster.Create(promises.UserActor, object) // it may be there
}

func (p people) newRollout() *v1beta1.Rollout {
	r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}
	r.Spec.WorkloadRef = p.ref
	if p.style == v1beta1.RollingStyleBlueGreen {
		r.Spec.Strategy.BlueGreen = &v1beta1.BlueGreenStrategy{}
	} else {
		r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{EnableExtraWorkloadForCanary: p.style == v1beta1.RollingStyleCanary}
	}
	steer.StepsOf(&r.Spec.Strategy).Steps = p.steps()
	p.lead(r)
	return r
}

// releaseOf returns what the status of a Rollout says of its release, in any style; nil for nothing.
func releaseOf(r *v1beta1.Rollout) *v1beta1.CommonStatus {
	switch {
	case r.Status.CanaryStatus != nil:
		return &r.Status.CanaryStatus.CommonStatus
	case r.Status.BlueGreenStatus != nil:
		return &r.Status.BlueGreenStatus.CommonStatus
	}
	return nil
}

// steps returns three steps that wait for approval, the last of which updates all Pods.
func (p people) steps() []v1beta1.Step {
	var out []v1beta1.Step
	for _, percent := range []int{10 + 10*p.Rand.Intn(3), 40 + 10*p.Rand.Intn(3), 100} {
		out = append(out, v1beta1.Step{Replicas: ptr.To(intstr.FromString(fmt.Sprintf("%d%%", percent)))})
	}
	return out
}

func (p people) rollout() *v1beta1.Rollout {
	r, _ := p.Cluster.Get(simulate.Key{Kind: rolloutKind, Namespace: "default", Name: "demo"}).(*v1beta1.Rollout)
	return r
}

// release is what users do to the Rollout.
func (p people) release() {
	r := p.rollout()
	if r == nil {
		p.create(p.newRollout())
		return
	}
	change := func(change func(*v1beta1.Rollout)) { simulate.Update(p.Cluster, promises.UserActor, r, change) }
	switch n := p.Rand.Intn(100); {
	case n < 50:
		p.approve()
	case n < 60:
		change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused = !r.Spec.Strategy.Paused })
	case n < 65:
		change(func(r *v1beta1.Rollout) {
			steer.StepsOf(&r.Spec.Strategy).Steps = p.steps()
			p.lead(r)
		})
	case n < 75:
		change(func(r *v1beta1.Rollout) {
			if at := releaseOf(r); at != nil {
				at.NextStepIndex = int32(p.Rand.Intn(6)) - 1
			}
		})
	case n < 85:
		change(func(r *v1beta1.Rollout) { r.Spec.Disabled = !r.Spec.Disabled })
	case n < 93 || p.leads || p.keepsFinalizer:
		p.Cluster.Delete(promises.UserActor, r)
	default: // somebody does not want to wait for the end of the release
		p.force()
	}
}

// force deletes the Rollout, and leaves it no time to end its release.
func (p people) force() {
	simulate.Update(p.Cluster, promises.UserActor, p.rollout(), func(r *v1beta1.Rollout) { r.Finalizers = nil })
	if r := p.rollout(); r != nil {
		p.Cluster.Delete(promises.UserActor, r)
	}
}

// approve approves the step that waits for it.
func (p people) approve() bool {
	r := p.rollout()
	if r == nil || r.Status.CurrentStepState != v1beta1.StepStatePaused || releaseOf(r).CurrentStepState != v1beta1.StepStatePaused {
		return false
	}
	simulate.Update(p.Cluster, promises.UserActor, r, func(r *v1beta1.Rollout) {
		releaseOf(r).CurrentStepState = v1beta1.StepStateReady
	})
	return true
}

// approveLate approves it some time, and reports whether a step waits.
func (p people) approveLate() bool {
	r := p.rollout()
	waits := r != nil && r.Status.CurrentStepState == v1beta1.StepStatePaused
	return waits && (!p.Chance(20) || p.approve())
}

// relent lets the release come to its end.
func (p people) relent() {
	r := p.rollout()
	switch {
	case p.forces && r != nil:
		p.force()
		return
	case p.forces:
		return
	case r == nil:
		if p.Chance(50) {
			p.create(p.newRollout())
		}
		return
	}
	simulate.Update(p.Cluster, promises.UserActor, r, func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused, r.Spec.Disabled = false, false })
}

// admit is the webhook: it returns what a workload that is written is stored as. O is what belongs to it.
func (p people) admit(old, now steer.Object, o steer.Objects) steer.Object {
	r := p.rollout()
	isSelected := old.GetLabels()[keys.WorkloadType] != "" || now.GetLabels()[keys.WorkloadType] != ""
	if !isSelected || r == nil || !steer.Intercepts(r) {
		return now
	}
	kind, _ := steer.Of(releases.GroupKind(p.ref), p.style)
	o.Workload = now
	stored, _ := steer.Stored(steer.Update{Old: old, Objects: o, Kind: kind, Rollout: r})
	return stored
}
