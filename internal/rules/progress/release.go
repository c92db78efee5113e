package progress

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Release is where a Rollout is in its steps.
type Release struct {
	*v1beta1.CommonStatus
	// Path is that of the status of the style, as a JSON pointer.
	Path string
	// Steps are those of the spec.
	Steps []v1beta1.Step
	// Updated and Ready are the updated Pods, and those of them that are ready.
	Updated, Ready int32
}

// ReleaseOf returns the release of a Rollout; false if its status tells of none.
func ReleaseOf(r *v1beta1.Rollout) (Release, bool) {
	switch s := &r.Status; {
	case s.CanaryStatus != nil && r.Spec.Strategy.Canary != nil:
		c := s.CanaryStatus
		return Release{&c.CommonStatus, "/status/canaryStatus", r.Spec.Strategy.Canary.Steps, c.CanaryReplicas, c.CanaryReadyReplicas}, true
	case s.BlueGreenStatus != nil && r.Spec.Strategy.BlueGreen != nil:
		b := s.BlueGreenStatus
		return Release{
			&b.CommonStatus, "/status/blueGreenStatus", r.Spec.Strategy.BlueGreen.Steps, b.UpdatedReplicas, b.UpdatedReadyReplicas,
		}, true
	}
	return Release{}, false
}

// NeedsApproval reports whether the step of a release goes on only when a person approves it; stopped is the reason of condition
// Progressing if that has stopped the release.
func (r Release) NeedsApproval(stopped string) bool {
	if r.CurrentStepState != v1beta1.StepStatePaused {
		return false
	}
	if StopsRelease(stopped) {
		return true
	}
	i := int(r.CurrentStepIndex) - 1
	return i >= 0 && i < len(r.Steps) && r.Steps[i].Pause.Duration == nil
}

// StopsRelease reports whether a reason of condition Progressing is that of a release that was stopped until a person approves it.
func StopsRelease(reason string) bool {
	switch reason {
	case v1beta1.ReasonAnalysisFailed, v1beta1.ReasonGuardFailed, v1beta1.ReasonRejected:
		return true
	}
	return false
}

// RolloutReason returns the reason and the message of a condition of a Rollout, and its status; empty where there is none.
func RolloutReason(r *v1beta1.Rollout, name string) (status corev1.ConditionStatus, reason, message string) {
	c := conditionOf(r.Status.Conditions, name, func(c v1beta1.RolloutCondition) told {
		return told{c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime}
	})
	return c.status, c.reason, c.message
}

func ofRollout(r *v1beta1.Rollout) Progress {
	s := r.Status
	p := Progress{Phase: Updating, Message: s.Message, Seen: seen(s.ObservedGeneration, r.ObjectMeta)}
	at, begun := ReleaseOf(r)
	if begun {
		p.Updated, p.Ready = at.Updated, at.Ready
	}
	ended, _, how := RolloutReason(r, v1beta1.ConditionSucceeded)
	switch {
	case !p.Seen:
		p.Message = "the controller has not seen the present spec yet"
	case s.Phase == v1beta1.RolloutPhaseHealthy && ended == corev1.ConditionFalse:
		p.Phase, p.Reason, p.Message = Failed, GivenUp, "the last release did not succeed: "+how
	case s.Phase == v1beta1.RolloutPhaseHealthy:
		p.Phase, p.Message = Done, "no release is under way"
		if ended == corev1.ConditionTrue {
			p.Message = "the last release succeeded"
		}
	case s.Phase == v1beta1.RolloutPhaseDisabled:
		p.Phase, p.Message = Done, "the Rollout is disabled, and leaves its workload alone"
	case s.Phase == v1beta1.RolloutPhaseInitial:
		p.Phase = Waiting
		p.Next = fmt.Sprintf("create %s %s", r.Spec.WorkloadRef.Kind, r.Spec.WorkloadRef.Name)
	case s.Phase == v1beta1.RolloutPhaseProgressing && begun:
		releaseProgress(&p, r, at)
	}
	return p
}

// releaseProgress judges a release that is under way.
func releaseProgress(p *Progress, r *v1beta1.Rollout, at Release) {
	p.Step, p.Steps = at.CurrentStepIndex, int32(len(at.Steps))
	if at.Message != "" {
		p.Message = at.Message
	}
	_, reason, message := RolloutReason(r, v1beta1.ConditionProgressing)
	if at.LastUpdateTime != nil {
		p.Since = &at.LastUpdateTime.Time
	}
	switch {
	case r.Spec.Strategy.Paused:
		p.Phase, p.Reason, p.Message, p.Next = Waiting, Paused, "the Rollout is paused", "resume it"
	case reason == v1beta1.ReasonCancelling:
		p.Message = message
	case reason == v1beta1.ReasonStepTimeout:
		p.Phase, p.Reason, p.Message = Failed, DeadlineExceeded, message
		p.Next = "mend the Pods that it names, or put the old template back (abort)"
	case reason == v1beta1.ReasonThirdVersion:
		p.Phase, p.Reason, p.Message = Failed, InvalidSpec, message
		p.Next = "put the old template back (abort)"
	case at.NeedsApproval(reason) && StopsRelease(reason):
		p.Phase, p.Reason, p.Next = Waiting, Halted, "retry or approve the step, or abort the release"
	case at.NeedsApproval(reason):
		p.Phase, p.Reason, p.Next = Waiting, NeedsApproval, "approve the step, or abort the release"
	}
	if p.Message == "" {
		p.Message = message
	}
}
