package cloneset

import (
	"time"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
)

// Status tells what was seen, and what failed. What was just asked for shows in the next pass.
func Status(v State, p plan.Plan, done apply.Outcome) v1beta1.CloneSetStatus {
	s := *v.Set.Status.DeepCopy()
	if v.Set.DeletionTimestamp != nil {
		return s
	}
	s.ObservedGeneration = v.Set.Generation
	fail := func(t v1beta1.CloneSetConditionType, message string) {
		c := v.workload.Failure(string(t), message)
		c.Reason = ""
		conditionsOf(&s).Set(c)
	}
	if v.problem != nil {
		fail(v1beta1.CloneSetConditionFailedUpdate, v.problem.Error())
		return s
	}
	s.LabelSelector = v.selector.String()
	v.count(&s)
	s.CollisionCount = rollout.CollisionCount(v.workload.History, done)
	fail(v1beta1.CloneSetConditionFailedScale, rollout.Failures(plan.Scale, p, done))
	fail(v1beta1.CloneSetConditionFailedUpdate, rollout.Failures(plan.Rollout, p, done))
	progressing, _ := v.progressing()
	conditionsOf(&s).Set(progressing)
	conditionsOf(&s).Set(v.workload.Waiting(v.members, p, done))
	return s
}

func (v *State) podCounts() rollout.Counts {
	c := rollout.Counts{Revision: v.workload.History.Update.Name}
	for _, m := range v.members {
		c.Add(m)
	}
	return c
}

// count writes the counts and the revisions into a status. The current revision moves on once every Pod has left it.
func (v *State) count(s *v1beta1.CloneSetStatus) {
	c := v.podCounts()
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas = c.Replicas, c.Ready, c.Available
	s.UpdatedReplicas, s.UpdatedReadyReplicas, s.UpdatedAvailableReplicas = c.Updated, c.UpdatedReady, c.UpdatedAvailable
	s.ExpectedUpdatedReplicas = int32(v.limits.Expected())
	s.UpdateRevision, s.CurrentRevision = c.Revision, v.workload.History.Current.Name
	if s.UpdatedReplicas == s.Replicas && s.Replicas == v.replicas() {
		s.CurrentRevision = s.UpdateRevision
	}
}

// progressing returns the condition Progressing, and the time until it could change by time alone.
func (v *State) progressing() (rollout.Condition, time.Duration) {
	var now v1beta1.CloneSetStatus
	v.count(&now)
	return v.workload.Progressing(rollout.Progress{
		Complete: now.CurrentRevision == now.UpdateRevision && now.Replicas == v.replicas() &&
			now.UpdatedReplicas == now.Replicas && now.UpdatedAvailableReplicas == now.Replicas,
		Reached: now.ExpectedUpdatedReplicas < v.replicas() && now.ExpectedUpdatedReplicas <= now.UpdatedAvailableReplicas,
		Moved:   countsIn(now).Beyond(countsIn(v.Set.Status)), Restarted: now.UpdateRevision != v.Set.Status.UpdateRevision,
	}, conditionsOf(&v.Set.Status).Get(string(v1beta1.CloneSetConditionProgressing)))
}

func countsIn(s v1beta1.CloneSetStatus) rollout.Counts {
	return rollout.Counts{
		Revision: s.UpdateRevision, Updated: s.UpdatedReplicas, Ready: s.ReadyReplicas,
		UpdatedReady: s.UpdatedReadyReplicas, UpdatedAvailable: s.UpdatedAvailableReplicas,
	}
}

func conditionsOf(s *v1beta1.CloneSetStatus) rollout.Conditions[v1beta1.CloneSetCondition] {
	return rollout.Conditions[v1beta1.CloneSetCondition]{
		List: &s.Conditions,
		From: func(c v1beta1.CloneSetCondition) rollout.Condition {
			return rollout.Condition{
				Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
				LastUpdate: c.LastUpdateTime, LastTransition: c.LastTransitionTime,
			}
		},
		To: func(c rollout.Condition) v1beta1.CloneSetCondition {
			return v1beta1.CloneSetCondition{
				Type: v1beta1.CloneSetConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
				LastUpdateTime: c.LastUpdate, LastTransitionTime: c.LastTransition,
			}
		},
	}
}

// saysComplete reports whether the status of a CloneSet says that all Pods are there, available, and as new as is wanted.
func saysComplete(set *v1beta1.CloneSet) bool {
	s := set.Status
	return set.Spec.Replicas != nil && s.Replicas == *set.Spec.Replicas && s.AvailableReplicas == s.Replicas &&
		s.UpdatedReplicas >= s.ExpectedUpdatedReplicas
}
