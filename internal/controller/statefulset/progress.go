package statefulset

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
)

// progressOf returns the condition Progressing, and the time until it could change by time alone. The condition's lastUpdateTime is when the rollout
// last came on.
func (v *Survey) progressOf() (v1beta1.StatefulSetCondition, time.Duration) {
	var now v1beta1.StatefulSetStatus
	v.count(&now)
	var last progress.Judgement
	if old := conditionOf(&v.Set.Status, v1beta1.StatefulSetConditionProgressing); old != nil {
		last = progress.Judgement{Status: old.Status, Reason: old.Reason, Message: old.Message, Since: old.LastTransitionTime.Time}
		if old.LastUpdateTime != nil {
			last.Since = old.LastUpdateTime.Time
		}
	}
	expected := max(v.replicas()-int32(v.limits.partition), 0)
	if v.onDelete() {
		expected = 0
	}
	judged, wait := progress.Judge(progress.Rollout{
		Kind: kind().Kind, Revision: now.UpdateRevision, DeadlineSeconds: v.Set.Spec.ProgressDeadlineSeconds,
		Complete: now.Replicas == v.replicas() && now.UpdatedReplicas == now.Replicas && now.UpdatedAvailableReplicas == now.Replicas,
		Paused:   v.strategy.Paused,
		Reached:  expected < v.replicas() && expected <= now.UpdatedAvailableReplicas && now.AvailableReplicas >= v.replicas(),
		Moved:    v.hasMoved(now), Now: v.Now,
	}, last)
	since := metav1.NewTime(judged.Since)
	return v1beta1.StatefulSetCondition{
		Type: v1beta1.StatefulSetConditionProgressing, Status: judged.Status, Reason: judged.Reason, Message: judged.Message,
		LastUpdateTime: &since, LastTransitionTime: since,
	}, wait
}

// hasMoved compares what is seen with what the status said last. A Pod less is progress as well: surplus ones go one after the other.
func (v *Survey) hasMoved(now v1beta1.StatefulSetStatus) bool {
	was := v.Set.Status
	return countsOf(now).Beyond(countsOf(was)) || now.Replicas < was.Replicas && was.Replicas > v.replicas()
}

func countsOf(s v1beta1.StatefulSetStatus) progress.Counts {
	return progress.Counts{
		Revision: s.UpdateRevision, Updated: s.UpdatedReplicas, Ready: s.ReadyReplicas,
		UpdatedReady: s.UpdatedReadyReplicas, UpdatedAvailable: s.UpdatedAvailableReplicas,
	}
}
