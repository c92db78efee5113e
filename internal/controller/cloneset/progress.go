package cloneset

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// rolloutProgress is the condition Progressing, and the time until it could change by time alone.
type rolloutProgress struct {
	condition  v1beta1.CloneSetCondition
	deadlineIn time.Duration
}

// progressOf judges whether the rollout makes progress. The time without progress runs from the condition's lastUpdateTime, which moves
// whenever the reason changes, a new revision is wanted, or more Pods are updated, ready or available; so neither a pause nor a reached
// partition counts against the deadline.
func progressOf(v *Survey) rolloutProgress {
	var out rolloutProgress
	out.condition.Type = v1beta1.CloneSetConditionProgressing
	deadline := v.Set.Spec.ProgressDeadlineSeconds
	if deadline == nil || *deadline == math.MaxInt32 {
		return out
	}
	var now v1beta1.CloneSetStatus
	report(v, &now)
	old := conditionOf(&v.Set.Status, out.condition.Type)
	c := &out.condition
	c.Status, c.LastUpdateTime = corev1.ConditionTrue, metav1.NewTime(v.Now)
	switch {
	case isComplete(v, now):
		c.Reason, c.Message = v1beta1.CloneSetAvailable, "CloneSet is available"
	case v.strategy.Paused:
		c.Reason, c.Message = v1beta1.CloneSetPaused, "CloneSet is paused"
	case now.ExpectedUpdatedReplicas < v.replicas() && now.ExpectedUpdatedReplicas <= now.UpdatedAvailableReplicas:
		c.Reason, c.Message = v1beta1.CloneSetProgressPartitionAvailable, "CloneSet has been paused due to partition ready"
	default:
		c.Reason, c.Message = v1beta1.CloneSetProgressUpdated, "CloneSet is progressing"
		moved := old == nil || hasMoved(v, now) ||
			(old.Reason != v1beta1.CloneSetProgressUpdated && old.Reason != v1beta1.CloneSetProgressDeadlineExceeded)
		if moved {
			out.deadlineIn = deadlineAfter(v.Now, v.Now, *deadline)
			return out
		}
		if left := deadlineAfter(old.LastUpdateTime.Time, v.Now, *deadline); left > 0 && old.Reason == v1beta1.CloneSetProgressUpdated {
			out.deadlineIn = left
		} else {
			c.Status, c.Reason = corev1.ConditionFalse, v1beta1.CloneSetProgressDeadlineExceeded
			c.Message = fmt.Sprintf("CloneSet revision %s has timed out progressing", now.UpdateRevision)
		}
	}
	if old != nil && old.Status == c.Status && old.Reason == c.Reason {
		*c = *old
	}
	return out
}

// deadlineAfter returns the time left until seconds after since are over, and a second more so that the look then comes late enough.
func deadlineAfter(since, now time.Time, seconds int32) time.Duration {
	left := since.Add(time.Duration(seconds) * time.Second).Sub(now)
	if left < 0 {
		return 0
	}
	return left + time.Second
}

func isComplete(v *Survey, s v1beta1.CloneSetStatus) bool {
	return s.CurrentRevision == s.UpdateRevision && s.Replicas == v.replicas() &&
		s.UpdatedReplicas == s.Replicas && s.UpdatedAvailableReplicas == s.Replicas
}

// hasMoved compares what is seen with what the status said last.
func hasMoved(v *Survey, now v1beta1.CloneSetStatus) bool {
	was := v.Set.Status
	return was.UpdateRevision != now.UpdateRevision ||
		now.UpdatedReplicas > was.UpdatedReplicas ||
		now.ReadyReplicas > was.ReadyReplicas ||
		now.UpdatedReadyReplicas > was.UpdatedReadyReplicas ||
		now.UpdatedAvailableReplicas > was.UpdatedAvailableReplicas
}
