package broadcastjob

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Status returns the status of the job. A status that the plan writes with an event is left to the plan.
func Status(v State, _ plan.Plan, _ apply.Outcome) v1beta1.BroadcastJobStatus {
	if v.result.event != "" {
		return *v.Job.Status.DeepCopy()
	}
	return v.status()
}

// status returns the status by the state. That of a finished job stays as it was.
func (v *State) status() v1beta1.BroadcastJobStatus {
	s := *v.Job.Status.DeepCopy()
	if v.Job.DeletionTimestamp != nil || v.problem != nil || isFinished(v.Job) {
		return s
	}
	now := metav1.NewTime(v.Now)
	if s.StartTime == nil {
		s.StartTime = &now
	}
	s.Phase = v.result.phase
	s.Desired, s.Active, s.Succeeded, s.Failed = int32(v.desired), int32(v.active), int32(v.succeeded), int32(v.failed)
	if !v.result.isFinished() {
		return s
	}
	s.CompletionTime = &now
	condition := v1beta1.BroadcastJobComplete
	if s.Phase == v1beta1.BroadcastJobFailed {
		condition = v1beta1.BroadcastJobFailure
		// Pods that are deleted because the job failed count as failed.
		s.Failed, s.Active = s.Failed+s.Active, 0
	}
	s.Conditions = []v1beta1.BroadcastJobCondition{{
		Type: condition, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
		Reason: string(condition), Message: v.result.message,
	}}
	return s
}
