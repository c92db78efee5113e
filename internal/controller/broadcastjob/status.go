package broadcastjob

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Status judges what was seen. What was just asked for shows in the next survey. A status that the plan announces is left to the plan.
func Status(v Survey, _ plan.Plan, _ apply.Outcome) v1beta1.BroadcastJobStatus {
	if v.verdict.event != "" {
		return *v.Job.Status.DeepCopy()
	}
	return v.status()
}

// status returns the status that the survey comes to. That of a job that is over stays as it was.
func (v *Survey) status() v1beta1.BroadcastJobStatus {
	s := *v.Job.Status.DeepCopy()
	if v.Job.DeletionTimestamp != nil || v.problem != nil || isFinished(v.Job) {
		return s
	}
	now := metav1.NewTime(v.Now)
	if s.StartTime == nil {
		s.StartTime = &now
	}
	s.Phase = v.verdict.phase
	s.Desired, s.Active, s.Succeeded, s.Failed = int32(v.desired), int32(v.active), int32(v.succeeded), int32(v.failed)
	if !v.verdict.isOver() {
		return s
	}
	s.CompletionTime = &now
	condition := v1beta1.BroadcastJobComplete
	if s.Phase == v1beta1.BroadcastJobFailed {
		condition = v1beta1.BroadcastJobFailure
		// What is deleted because the job has failed has failed with it.
		s.Failed, s.Active = s.Failed+s.Active, 0
	}
	s.Conditions = []v1beta1.BroadcastJobCondition{{
		Type: condition, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
		Reason: string(condition), Message: v.verdict.message,
	}}
	return s
}
