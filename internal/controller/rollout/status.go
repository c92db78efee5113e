package rollout

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Event reasons. Wire: users' alerts and tools match them.
const (
	eventProgressing    = "Progressing"
	eventUnsupported    = "UnsupportedWorkload"
	eventNotIntercepted = "NotIntercepted"
	eventTimeout        = v1beta1.ReasonStepTimeout
)

// Status returns the status that was decided, with the conditions that tools wait for.
func Status(v State, _ plan.Plan, _ apply.Outcome) v1beta1.RolloutStatus {
	r := v.Rollout
	if !hasFinalizer(r) {
		return *r.Status.DeepCopy()
	}
	if v.isStuck() {
		return v.stuck()
	}
	s := *v.decision.Status.DeepCopy()
	s.ObservedGeneration = r.Generation
	v.ready(&s)
	v.stalled(&s)
	v.intercepted(&s)
	return s
}

// stuck says what has to come before anything can be decided.
func (v *State) stuck() v1beta1.RolloutStatus {
	s := *v.Rollout.Status.DeepCopy()
	s.Phase, s.Message = cmp.Or(s.Phase, v1beta1.RolloutPhaseInitial), cmp.Or(v.problem, v.lacks)
	s.ObservedGeneration = v.Rollout.Generation
	v.set(&s, v1beta1.ConditionReady, corev1.ConditionFalse, eventUnsupported, s.Message)
	v.set(&s, v1beta1.ConditionStalled, corev1.ConditionTrue, eventUnsupported, s.Message)
	return s
}

// ready says whether no release is under way.
func (v *State) ready(s *v1beta1.RolloutStatus) {
	switch s.Phase {
	case v1beta1.RolloutPhaseHealthy, v1beta1.RolloutPhaseDisabled:
		v.set(s, v1beta1.ConditionReady, corev1.ConditionTrue, string(s.Phase), "no release is under way")
	default:
		v.set(s, v1beta1.ConditionReady, corev1.ConditionFalse, string(s.Phase), "see condition Progressing and the message")
	}
}

// stalled says whether a person is needed.
func (v *State) stalled(s *v1beta1.RolloutStatus) {
	needs := []string{
		v1beta1.ReasonStepTimeout, v1beta1.ReasonAnalysisFailed, v1beta1.ReasonGuardFailed, v1beta1.ReasonRejected,
		v1beta1.ReasonThirdVersion,
	}
	c := find(s, v1beta1.ConditionProgressing)
	if c != nil && slices.Contains(needs, c.Reason) && s.Phase == v1beta1.RolloutPhaseProgressing {
		v.set(s, v1beta1.ConditionStalled, corev1.ConditionTrue, c.Reason, c.Message)
		return
	}
	v.set(s, v1beta1.ConditionStalled, corev1.ConditionFalse, "NotStalled", "it goes on by itself, or waits for what its steps say")
}

// intercepted says whether a change of the template has gone out natively, because the webhook did not see it: the workload had no label
// yet, or more than one revision.
func (v *State) intercepted(s *v1beta1.RolloutStatus) {
	switch why := v.passed(); {
	case why != "":
		v.set(s, v1beta1.ConditionIntercepted, corev1.ConditionFalse, eventNotIntercepted, why)
	case s.Phase == v1beta1.RolloutPhaseProgressing && find(s, v1beta1.ConditionIntercepted) != nil:
		v.set(s, v1beta1.ConditionIntercepted, corev1.ConditionTrue, "Intercepted", "the last change of the template is released in steps")
	}
}

// hasPassed tells whether the workload has come to another revision without a release.
func (v *State) hasPassed() bool {
	was, f := v.Rollout.Status, v.facts
	at := commonOf(&was)
	if v.Objects.Workload == nil || was.Phase != v1beta1.RolloutPhaseHealthy || at == nil || f.Marked || !f.Settled {
		return false
	}
	revision := ""
	if was.CanaryStatus != nil {
		revision = was.CanaryStatus.CanaryRevision
	} else {
		revision = was.BlueGreenStatus.UpdatedRevision
	}
	return f.Update != revision && f.Update != at.StableRevision && v.kind.Refuses(v.Objects) == ""
}

// isUnderWay tells whether a workload that the Rollout sees for the first time is being updated already: both may have been applied at one
// moment, and the workload came first.
func (v *State) isUnderWay() bool {
	f := v.facts
	return v.Objects.Workload != nil && commonOf(&v.Rollout.Status) == nil && v.decision.Status.Phase == v1beta1.RolloutPhaseHealthy &&
		f.Settled && !f.Marked && f.Stable != f.Update && v.kind.Refuses(v.Objects) == ""
}

// passed says which revision has gone out without a release, or goes out; empty if none is known to.
func (v *State) passed() string {
	switch {
	case v.hasPassed():
		return fmt.Sprintf("revision %s went out without steps: it was applied before the workload had its label, while it had Pods of "+
			"several revisions, or while no webhook was there; put the old template back to undo it", v.facts.Update)
	case v.isUnderWay():
		return fmt.Sprintf("revision %s was going out without steps when this Rollout came, or was enabled: apply Rollouts before the "+
			"templates that they are to release; put the old template back to undo it", v.facts.Update)
	}
	return ""
}

// events tells of what has just been decided for the first time.
func (v *State) events(b *plan.Builder) {
	was, is := v.Rollout.Status, v.decision.Status
	tell := func(message string) {
		b.Hold(plan.Hold{Code: reason.Nothing, Why: message, Event: eventProgressing, EventType: corev1.EventTypeNormal})
	}
	before, after := reasonOf(&was), reasonOf(&is)
	old, now := commonOf(&was), commonOf(&is)
	switch {
	case is.Phase == v1beta1.RolloutPhaseProgressing && was.Phase != is.Phase:
		tell("a release begins")
	case before != after && after == v1beta1.ReasonCancelling && !isGoingBack(&was, &is):
		tell("the old template is back: the release is rolled back")
	case before != after && after == v1beta1.ReasonStepTimeout:
		b.Hold(plan.Hold{Code: reason.DeadlineExceeded, Why: find(&is, v1beta1.ConditionProgressing).Message, Event: eventTimeout,
			EventType: corev1.EventTypeWarning})
	case before != after && after == v1beta1.ReasonInitializing && was.Phase == is.Phase && was.Phase == v1beta1.RolloutPhaseProgressing:
		tell("the template has changed again: the release begins anew")
	case old != nil && now != nil && old.CurrentStepState == v1beta1.StepStateUpgrade && now.CurrentStepState != v1beta1.StepStateUpgrade &&
		now.CurrentStepState != v1beta1.StepStateBeforeUpgrade:
		tell(fmt.Sprintf("step %d: its Pods are up", old.CurrentStepIndex))
	}
	if why := v.passed(); why != "" {
		b.Hold(plan.Hold{Code: reason.Nothing, Why: why, Event: eventNotIntercepted, EventType: corev1.EventTypeWarning})
	}
}

func find(s *v1beta1.RolloutStatus, of string) *v1beta1.RolloutCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == of {
			return &s.Conditions[i]
		}
	}
	return nil
}

func reasonOf(s *v1beta1.RolloutStatus) string {
	if c := find(s, v1beta1.ConditionProgressing); c != nil {
		return c.Reason
	}
	return ""
}

// set sets a condition. Its times change only with what it says.
func (v *State) set(s *v1beta1.RolloutStatus, of string, status corev1.ConditionStatus, reason, message string) {
	now := metav1.NewTime(v.Now)
	next := v1beta1.RolloutCondition{
		Type: of, Status: status, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now,
	}
	c := find(s, of)
	if c == nil {
		s.Conditions = append(s.Conditions, next)
		return
	}
	if c.Status == status {
		next.LastTransitionTime = c.LastTransitionTime
	}
	if c.Status != status || c.Reason != reason || c.Message != message {
		*c = next
	}
}

// isMinor reports whether two statuses differ only in counts, in words, and in the label of new Pods, which nothing goes by.
func isMinor(stored, next *v1beta1.RolloutStatus) bool {
	a, b := stored.DeepCopy(), next.DeepCopy()
	for _, s := range []*v1beta1.RolloutStatus{a, b} {
		s.Message = ""
		if at := commonOf(s); at != nil {
			at.Message, at.ObservedWorkloadGeneration, at.PodTemplateHash = "", 0, ""
		}
		if s.CanaryStatus != nil {
			s.CanaryStatus.CanaryReplicas, s.CanaryStatus.CanaryReadyReplicas = 0, 0
		}
		if s.BlueGreenStatus != nil {
			s.BlueGreenStatus.UpdatedReplicas, s.BlueGreenStatus.UpdatedReadyReplicas = 0, 0
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}
