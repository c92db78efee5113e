package cloneset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Status judges what was seen, and tells of what failed. What was just asked for shows in the next survey.
func Status(v Survey, p plan.Plan, done apply.Outcome) v1beta1.CloneSetStatus {
	s := *v.Set.Status.DeepCopy()
	if v.Set.DeletionTimestamp != nil {
		return s
	}
	s.ObservedGeneration = v.Set.Generation
	if v.problem != nil {
		setCondition(&s, failure(&v, plan.Rollout, v.problem.Error()))
		return s
	}
	s.LabelSelector = v.selector.String()
	report(&v, &s)
	s.CollisionCount = rollout.CollisionCount(v.history, done)
	for _, concern := range []plan.Concern{plan.Scale, plan.Rollout} {
		setCondition(&s, failure(&v, concern, rollout.Failures(concern, p, done)))
	}
	progressing, _ := progressOf(&v)
	setCondition(&s, progressing)
	return s
}

// report writes the counts and the revisions into a status. The current revision moves on once every Pod has left it.
func report(v *Survey, s *v1beta1.CloneSetStatus) {
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0
	s.UpdatedReplicas, s.UpdatedReadyReplicas, s.UpdatedAvailableReplicas = 0, 0, 0
	count := func(updated bool, all, ofUpdate *int32) {
		*all++
		if updated {
			*ofUpdate++
		}
	}
	for _, m := range v.fleet.members {
		count(m.updated, &s.Replicas, &s.UpdatedReplicas)
		if pod.IsReady(m.pod) {
			count(m.updated, &s.ReadyReplicas, &s.UpdatedReadyReplicas)
		}
		if m.available {
			count(m.updated, &s.AvailableReplicas, &s.UpdatedAvailableReplicas)
		}
	}
	s.ExpectedUpdatedReplicas = int32(v.limits.Expected())
	s.UpdateRevision, s.CurrentRevision = v.history.Update.Name, v.history.Current.Name
	if s.UpdatedReplicas == s.Replicas && s.Replicas == v.replicas() {
		s.CurrentRevision = s.UpdateRevision
	}
}

// failure is the condition FailedScale or FailedUpdate: True with a message, False once it is over, and absent when it never was.
func failure(v *Survey, concern plan.Concern, message string) v1beta1.CloneSetCondition {
	c := v1beta1.CloneSetCondition{Type: v1beta1.CloneSetConditionFailedUpdate, Status: corev1.ConditionFalse, Message: message}
	if concern == plan.Scale {
		c.Type = v1beta1.CloneSetConditionFailedScale
	}
	if message != "" {
		c.Status = corev1.ConditionTrue
	}
	c.LastUpdateTime = metav1.NewTime(v.Now)
	old := conditionOf(&v.Set.Status, c.Type)
	if old == nil && message == "" {
		c.Status = ""
	}
	return c
}

func conditionOf(s *v1beta1.CloneSetStatus, t v1beta1.CloneSetConditionType) *v1beta1.CloneSetCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// setCondition puts a condition into the status; one without a status value is removed. A condition that says nothing new keeps its times.
func setCondition(s *v1beta1.CloneSetStatus, want v1beta1.CloneSetCondition) {
	old := conditionOf(s, want.Type)
	switch {
	case want.Status == "":
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c v1beta1.CloneSetCondition) bool { return c.Type == want.Type })
	case old == nil:
		want.LastTransitionTime = want.LastUpdateTime
		s.Conditions = append(s.Conditions, want)
	default:
		want.LastTransitionTime = old.LastTransitionTime
		if old.Status != want.Status {
			want.LastTransitionTime = want.LastUpdateTime
		}
		same := *old
		same.LastUpdateTime = want.LastUpdateTime
		if want.Type != v1beta1.CloneSetConditionProgressing && equality.Semantic.DeepEqual(same, want) {
			return
		}
		*old = want
	}
}

// saysComplete reports whether the status of a CloneSet says that all Pods are there, available, and as new as is wanted.
func saysComplete(set *v1beta1.CloneSet) bool {
	s := set.Status
	return set.Spec.Replicas != nil && s.Replicas == *set.Spec.Replicas && s.AvailableReplicas == s.Replicas && s.UpdatedReplicas >= s.ExpectedUpdatedReplicas
}
