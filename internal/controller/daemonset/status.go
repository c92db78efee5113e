package daemonset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Status judges what was seen, and tells of what failed. What was just asked for shows in the next survey.
func Status(v Survey, p plan.Plan, done apply.Outcome) v1beta1.DaemonSetStatus {
	s := *v.Set.Status.DeepCopy()
	if v.Set.DeletionTimestamp != nil {
		return s
	}
	if !v.Predecessor {
		s.ObservedGeneration = v.Set.Generation
	}
	if v.problem != nil {
		v.setCondition(&s, v1beta1.DaemonSetConditionFailedUpdate, v.problem.Error())
		return s
	}
	v.count(&s)
	s.UpdateRevision = revision.ShortHash(v.history.Update.Name)
	s.CollisionCount = v.Set.Status.CollisionCount
	if count := rollout.CollisionCount(v.history, done); *count > 0 {
		s.CollisionCount = count
	}
	v.setCondition(&s, v1beta1.DaemonSetConditionFailedScale, rollout.Failures(plan.Scale, p, done))
	v.setCondition(&s, v1beta1.DaemonSetConditionFailedUpdate, rollout.Failures(plan.Rollout, p, done))
	return s
}

// count writes the numbers of nodes into a status. The first Pod of a node speaks for it.
func (v *Survey) count(s *v1beta1.DaemonSetStatus) {
	s.DesiredNumberScheduled = int32(v.desired)
	s.CurrentNumberScheduled, s.NumberMisscheduled, s.NumberReady, s.NumberAvailable, s.UpdatedNumberScheduled = 0, 0, 0, 0, 0
	for _, p := range v.places {
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
			&s.NumberReady: first.ready, &s.NumberAvailable: first.available, &s.UpdatedNumberScheduled: first.updated,
		} {
			if holds {
				*number++
			}
		}
	}
	s.NumberUnavailable = s.DesiredNumberScheduled - s.NumberAvailable
}

// setCondition tells of a failure: True with a message, False once it is over, and absent when there never was one.
func (v *Survey) setCondition(s *v1beta1.DaemonSetStatus, kind appsv1.DaemonSetConditionType, message string) {
	want := appsv1.DaemonSetCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: "Succeeded", LastTransitionTime: metav1.NewTime(v.Now),
	}
	if message != "" {
		want.Status, want.Reason, want.Message = corev1.ConditionTrue, "Failed", message
	}
	i := slices.IndexFunc(s.Conditions, func(c appsv1.DaemonSetCondition) bool { return c.Type == kind })
	switch {
	case i < 0 && message == "":
	case i < 0:
		s.Conditions = append(s.Conditions, want)
	default:
		if s.Conditions[i].Status == want.Status {
			want.LastTransitionTime = s.Conditions[i].LastTransitionTime
		}
		s.Conditions[i] = want
	}
}

// saysComplete reports whether the status of a DaemonSet says that all Pods are there, available, and as new as is wanted.
func saysComplete(o plan.Object) bool {
	s := o.(*v1beta1.DaemonSet).Status
	return s.CurrentNumberScheduled == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled && s.UpdatedNumberScheduled == s.DesiredNumberScheduled
}
