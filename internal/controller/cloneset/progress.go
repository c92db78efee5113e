package cloneset

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
)

// progressOf returns the condition Progressing, and the time until it could change by time alone. The condition's lastUpdateTime is when the rollout
// last came on.
func progressOf(v *Survey) (v1beta1.CloneSetCondition, time.Duration) {
	var now v1beta1.CloneSetStatus
	report(v, &now)
	var last progress.Judgement
	if old := conditionOf(&v.Set.Status, v1beta1.CloneSetConditionProgressing); old != nil {
		last = progress.Judgement{Status: old.Status, Reason: old.Reason, Message: old.Message, Since: old.LastUpdateTime.Time}
	}
	judged, wait := progress.Judge(progress.Rollout{
		Kind: kind().Kind, Revision: now.UpdateRevision, DeadlineSeconds: v.Set.Spec.ProgressDeadlineSeconds,
		Complete: isComplete(v, now), Paused: v.strategy.Paused,
		Reached: now.ExpectedUpdatedReplicas < v.replicas() && now.ExpectedUpdatedReplicas <= now.UpdatedAvailableReplicas,
		Moved:   hasMoved(v, now), Now: v.Now,
	}, last)
	return v1beta1.CloneSetCondition{
		Type: v1beta1.CloneSetConditionProgressing, Status: judged.Status, Reason: judged.Reason, Message: judged.Message,
		LastUpdateTime: metav1.NewTime(judged.Since),
	}, wait
}

func isComplete(v *Survey, s v1beta1.CloneSetStatus) bool {
	return s.CurrentRevision == s.UpdateRevision && s.Replicas == v.replicas() &&
		s.UpdatedReplicas == s.Replicas && s.UpdatedAvailableReplicas == s.Replicas
}

// hasMoved compares what is seen with what the status said last.
func hasMoved(v *Survey, now v1beta1.CloneSetStatus) bool {
	return countsOf(now).Beyond(countsOf(v.Set.Status))
}

func countsOf(s v1beta1.CloneSetStatus) progress.Counts {
	return progress.Counts{
		Revision: s.UpdateRevision, Updated: s.UpdatedReplicas, Ready: s.ReadyReplicas,
		UpdatedReady: s.UpdatedReadyReplicas, UpdatedAvailable: s.UpdatedAvailableReplicas,
	}
}
