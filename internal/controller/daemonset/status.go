package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Status tells what was seen, and what failed. What was just asked for shows in the next pass.
func Status(v State, p plan.Plan, done apply.Outcome) v1beta1.DaemonSetStatus {
	s := *v.Set.Status.DeepCopy()
	if v.Set.DeletionTimestamp != nil {
		return s
	}
	if !v.Predecessor {
		s.ObservedGeneration = v.Set.Generation
	}
	fail := func(t appsv1.DaemonSetConditionType, message string) {
		conditionsOf(&s).Set(v.workload.Failure(string(t), message))
	}
	if v.problem != nil {
		fail(v1beta1.DaemonSetConditionFailedUpdate, v.problem.Error())
		return s
	}
	v.count(&s)
	s.UpdateRevision = revision.ShortHash(v.workload.History.Update.Name)
	s.CollisionCount = v.Set.Status.CollisionCount
	if count := rollout.CollisionCount(v.workload.History, done); *count > 0 {
		s.CollisionCount = count
	}
	fail(v1beta1.DaemonSetConditionFailedScale, rollout.Failures(plan.Scale, p, done))
	fail(v1beta1.DaemonSetConditionFailedUpdate, rollout.Failures(plan.Rollout, p, done))
	conditionsOf(&s).Set(v.workload.Waiting(v.members(), p, done))
	return s
}

// count writes the numbers of nodes into a status. Of a node's Pods the first counts.
func (v *State) count(s *v1beta1.DaemonSetStatus) {
	s.DesiredNumberScheduled = int32(v.desired)
	s.CurrentNumberScheduled, s.NumberMisscheduled, s.NumberReady, s.NumberAvailable, s.UpdatedNumberScheduled = 0, 0, 0, 0, 0
	for _, p := range v.nodeStates {
		switch {
		case len(p.members) == 0 || p.node == nil:
			continue
		case !p.verdict.Run:
			s.NumberMisscheduled++
			continue
		}
		s.CurrentNumberScheduled++
		first := p.members[0]
		for number, holds := range map[*int32]bool{
			&s.NumberReady: first.Ready, &s.NumberAvailable: first.Available, &s.UpdatedNumberScheduled: first.Updated,
		} {
			if holds {
				*number++
			}
		}
	}
	s.NumberUnavailable = s.DesiredNumberScheduled - s.NumberAvailable
}

func conditionsOf(s *v1beta1.DaemonSetStatus) rollout.Conditions[appsv1.DaemonSetCondition] {
	return rollout.Conditions[appsv1.DaemonSetCondition]{
		List: &s.Conditions,
		From: func(c appsv1.DaemonSetCondition) rollout.Condition {
			return rollout.Condition{
				Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransition: c.LastTransitionTime,
			}
		},
		To: func(c rollout.Condition) appsv1.DaemonSetCondition {
			return appsv1.DaemonSetCondition{
				Type: appsv1.DaemonSetConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
				LastTransitionTime: c.LastTransition,
			}
		},
	}
}

// saysComplete reports whether the status of a DaemonSet says that all Pods are there, available, and as new as is wanted.
func saysComplete(set *v1beta1.DaemonSet) bool {
	s := set.Status
	return s.CurrentNumberScheduled == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled &&
		s.UpdatedNumberScheduled == s.DesiredNumberScheduled
}
