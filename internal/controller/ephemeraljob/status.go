package ephemeraljob

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
)

// Status counts what was read, and tells what was refused in this pass; containers that it added count in the next one. The status of a job
// that finishes in this pass is left to the plan.
func Status(v State, _ plan.Plan, done apply.Outcome) v1alpha1.EphemeralJobStatus {
	if v.result.isFinished() {
		return *v.Job.Status.DeepCopy()
	}
	return v.status(v.refusal(done))
}

// refusal returns why the API server refused the containers for a Pod, in this pass or in an earlier one whose Pod is still left alone;
// else empty.
func (v *State) refusal(done apply.Outcome) string {
	for _, r := range done.Results {
		if r.Action.Verb == plan.AddContainers && apply.IsRefused(r.Err) {
			return r.Err.Error()
		}
	}
	for _, t := range v.targets {
		if t.State != ephemeral.Absent || !v.isRefused(t.pod) {
			continue
		}
		if c := find(v.Job.Status.Conditions, v1alpha1.EphemeralJobIsFailed); c != nil {
			return c.Message
		}
	}
	return ""
}

// status returns the status by the state. That of a finished job stays as it was.
func (v *State) status(refusal string) v1alpha1.EphemeralJobStatus {
	s := *v.Job.Status.DeepCopy()
	if v.Job.DeletionTimestamp != nil || isFinished(v.Job) {
		return s
	}
	now := metav1.NewTime(v.Now)
	if s.StartTime == nil {
		s.StartTime = &now
	}
	s.Phase = v.result.phase
	if v.problem == nil {
		s.Match, s.Waiting, s.Running = int32(len(v.targets)), int32(v.waiting), int32(v.running)
		s.Succeeded, s.Failed = int32(v.succeeded), int32(v.failed)
	}
	if v.result.isFinished() {
		s.CompletionTime = &now
	}
	wanted := []v1alpha1.EphemeralJobCondition{fact(v1alpha1.EphemeralJobInitialized, reasonInitialized, "")}
	if refusal != "" {
		wanted = append(wanted, fact(v1alpha1.EphemeralJobIsFailed, reasonCreateFailed, refusal))
	}
	if r := v.result; r.condition != "" {
		wanted = append(wanted, fact(r.condition, r.reason, r.message))
	}
	s.Conditions = since(s.Conditions, wanted, now)
	return s
}

func fact(t v1alpha1.EphemeralJobConditionType, reason, message string) v1alpha1.EphemeralJobCondition {
	return v1alpha1.EphemeralJobCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}

// since returns the conditions with the times since when they are true; those that are as they were keep theirs.
func since(before, wanted []v1alpha1.EphemeralJobCondition, now metav1.Time) []v1alpha1.EphemeralJobCondition {
	for i := range wanted {
		c := &wanted[i]
		c.LastProbeTime, c.LastTransitionTime = now, now
		was := find(before, c.Type)
		if was == nil || was.Status != c.Status || was.Reason != c.Reason {
			continue
		}
		c.LastTransitionTime = was.LastTransitionTime
		if was.Message == c.Message {
			c.LastProbeTime = was.LastProbeTime
		}
	}
	return wanted
}

func find(conditions []v1alpha1.EphemeralJobCondition, t v1alpha1.EphemeralJobConditionType) *v1alpha1.EphemeralJobCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}
