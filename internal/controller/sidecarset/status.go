package sidecarset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Status tells what was seen. What was just asked for shows in the next pass.
func Status(v State, _ plan.Plan, done apply.Outcome) v1beta1.SidecarSetStatus {
	s := *v.Set.Status.DeepCopy()
	if v.Set.DeletionTimestamp != nil {
		return s
	}
	s.ObservedGeneration = v.Set.Generation
	if v.problem == nil {
		s.MatchedPods, s.UpdatedPods, s.ReadyPods, s.UpdatedReadyPods, s.NotUpgradablePods = 0, 0, 0, 0, 0
		for i := range v.matched {
			one := &v.matched[i]
			s.MatchedPods++
			s.UpdatedPods += number(one.Updated)
			s.ReadyPods += number(one.IsServing())
			s.UpdatedReadyPods += number(one.Updated && one.IsServing())
			s.NotUpgradablePods += number(!one.Upgradable)
		}
		s.LatestRevision = v.history.Update.Name
		s.CollisionCount = rollout.CollisionCount(v.history, done)
	}
	condition := progressing(&v, &s)
	condition.Type, condition.ObservedGeneration = v1beta1.SidecarSetConditionProgressing, v.Set.Generation
	condition.LastTransitionTime = metav1.NewTime(v.Now)
	meta.SetStatusCondition(&s.Conditions, condition)
	return s
}

// isOver reports whether a SidecarSet's status says that its present spec has been brought to all Pods that it is to be brought to.
func isOver(set *v1beta1.SidecarSet) bool {
	if set.Status.ObservedGeneration != set.Generation {
		return false
	}
	c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.SidecarSetConditionProgressing)
	if c == nil {
		return false
	}
	switch c.Reason {
	case v1beta1.SidecarSetUpdated, v1beta1.SidecarSetPartitionReached, v1beta1.SidecarSetImmutableFieldChanged:
		return true
	default:
		return false
	}
}

func number(is bool) int32 {
	if is {
		return 1
	}
	return 0
}

// progressing says whether Pods are being updated, and else why not. The first reason that holds counts.
func progressing(v *State, s *v1beta1.SidecarSetStatus) metav1.Condition {
	d := &v.decision
	no := func(reason, format string, args ...any) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	behind := s.MatchedPods - s.UpdatedPods
	switch {
	case v.problem != nil:
		return no(v1beta1.SidecarSetInvalid, "%v", v.problem)
	case !v.updates():
		return no(v1beta1.SidecarSetNotUpdate, "existing Pods keep the sidecars that they have")
	case behind > 0 && v.Set.Spec.UpdateStrategy.Paused:
		return no(v1beta1.SidecarSetPaused, "%d of %d Pods are updated", s.UpdatedPods, s.MatchedPods)
	case len(d.OverBudget) > 0 && len(d.Update) == 0 && (d.MaxUnavailable == 0 || broken(v) != ""):
		return no(v1beta1.SidecarSetBudgetExhausted, "%d Pods wait because maxUnavailable is %d%s",
			len(d.OverBudget), d.MaxUnavailable, broken(v))
	case len(d.Update)+len(d.Waiting)+len(d.OverBudget) > 0 || s.UpdatedReadyPods < s.UpdatedPods:
		return metav1.Condition{
			Status: metav1.ConditionTrue, Reason: v1beta1.SidecarSetUpdating,
			Message: fmt.Sprintf("%d of %d Pods are updated, %d of these ready%s",
				s.UpdatedPods, s.MatchedPods, s.UpdatedReadyPods, broken(v)),
		}
	case len(d.NotUpgradable) > 0:
		return no(v1beta1.SidecarSetImmutableFieldChanged,
			"%d Pods have to be created anew to get the present sidecars: more than images differ", len(d.NotUpgradable))
	case behind > 0:
		return no(v1beta1.SidecarSetPartitionReached,
			"%d of %d Pods are updated, as many as the partition and the selector let be", s.UpdatedPods, s.MatchedPods)
	default:
		return no(v1beta1.SidecarSetUpdated, "all Pods are updated")
	}
}

// broken tells of an updated Pod that does not get ready by itself; nothing where there is none.
func broken(v *State) string {
	for i := range v.matched {
		if s := &v.matched[i]; s.Updated && !s.IsServing() {
			if why := pod.Broken(s.Pod); why != "" {
				return fmt.Sprintf("; Pod %s: %s", nameOf(s.Pod), why)
			}
		}
	}
	return ""
}
