package statefulset

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
)

// Reasons of the conditions.
const (
	reasonFailed               = "Failed"
	reasonSucceeded            = "Succeeded"
	reasonClaimTemplatesChange = "VolumeClaimTemplatesChanged"
)

// Status judges what was seen, and tells of what failed. What was just asked for shows in the next survey.
func Status(v Survey, p plan.Plan, done apply.Outcome) v1beta1.StatefulSetStatus {
	s := *v.Set.Status.DeepCopy()
	s.ObservedGeneration = v.Set.Generation
	if v.problem != nil {
		setCondition(&s, v.failure(v1beta1.StatefulSetConditionFailedUpdatePod, v.problem.Error()))
		return s
	}
	s.LabelSelector = v.selector.String()
	v.count(&s)
	if v.Set.DeletionTimestamp != nil {
		return s
	}
	s.CollisionCount = rollout.CollisionCount(v.history, done)
	s.VolumeClaims = v.claimStatus()
	setCondition(&s, v.failure(v1beta1.StatefulSetConditionFailedCreatePod, rollout.Failures(plan.Scale, p, done)))
	setCondition(&s, v.failedUpdate(rollout.Failures(plan.Rollout, p, done)))
	progressing, _ := v.progressOf()
	setCondition(&s, progressing)
	return s
}

// count writes the numbers and the revisions into a status.
func (v *Survey) count(s *v1beta1.StatefulSetStatus) {
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0
	s.CurrentReplicas, s.UpdatedReplicas, s.UpdatedReadyReplicas, s.UpdatedAvailableReplicas = 0, 0, 0, 0
	for _, m := range v.members() {
		if m.pod.Status.Phase == "" {
			continue
		}
		tally := func(holds bool, all, updated *int32) {
			if holds {
				*all++
				if m.updated {
					*updated++
				}
			}
		}
		s.Replicas++
		tally(m.ready, &s.ReadyReplicas, &s.UpdatedReadyReplicas)
		tally(m.available, &s.AvailableReplicas, &s.UpdatedAvailableReplicas)
		if !m.leaving && m.updated {
			s.UpdatedReplicas++
		}
		if !m.leaving && v.history.IsCurrent(m.pod) {
			s.CurrentReplicas++
		}
	}
	s.UpdateRevision, s.CurrentRevision = v.history.Update.Name, v.history.Current.Name
	if v.isComplete(s) {
		s.CurrentRevision, s.CurrentReplicas = s.UpdateRevision, s.UpdatedReplicas
	}
}

// isComplete reports whether all Pods have left the current revision. A StatefulSet that is scaled to nothing in the middle of a canary has not done
// so: its Pods come back at the revisions that they had.
func (v *Survey) isComplete(s *v1beta1.StatefulSetStatus) bool {
	replicas := v.replicas()
	if v.onDelete() || replicas == 0 && v.limits.partition > 0 {
		return false
	}
	return s.Replicas == replicas && s.UpdatedReplicas == replicas && s.UpdatedReadyReplicas == replicas
}

// claimStatus tells how far the claims have grown.
func (v *Survey) claimStatus() []v1beta1.VolumeClaimStatus {
	var out []v1beta1.VolumeClaimStatus
	for i := range v.Set.Spec.VolumeClaimTemplates {
		template := &v.Set.Spec.VolumeClaimTemplates[i]
		status := v1beta1.VolumeClaimStatus{VolumeClaimName: template.Name}
		for _, m := range v.members() {
			c := v.claims[claim.Name(template.Name, v.Set.Name, strconv.Itoa(int(m.ordinal)))]
			if c == nil || !claim.IsCompatible(c, template) {
				continue
			}
			status.CompatibleReplicas++
			if claim.IsReady(c) {
				status.CompatibleReadyReplicas++
			}
		}
		out = append(out, status)
	}
	return out
}

// failedUpdate is the condition FailedUpdatePod. Pods whose volumes are not those of the claim templates, and that no update will recreate, are named
// as well.
func (v *Survey) failedUpdate(message string) v1beta1.StatefulSetCondition {
	c := v.failure(v1beta1.StatefulSetConditionFailedUpdatePod, message)
	if !v.onDelete() && !v.inPlaceOnly() {
		return c
	}
	for _, s := range v.slots {
		if s.member != nil && !s.member.fits {
			c.Status, c.Reason = corev1.ConditionTrue, reasonClaimTemplatesChange
			c.Message = "the volumes of " + s.name + " are not those of the claim templates: delete it to have it created with them"
			return c
		}
	}
	return c
}

// failure is a condition that is True with a message, False once it is over, and absent when it never was.
func (v *Survey) failure(t v1beta1.StatefulSetConditionType, message string) v1beta1.StatefulSetCondition {
	c := v1beta1.StatefulSetCondition{Type: t, Status: corev1.ConditionFalse, Reason: reasonSucceeded, LastTransitionTime: metav1.NewTime(v.Now)}
	if message != "" {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, reasonFailed, message
	}
	return c
}

func conditionOf(s *v1beta1.StatefulSetStatus, t v1beta1.StatefulSetConditionType) *v1beta1.StatefulSetCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// setCondition puts a condition into the status; one without a status value is removed. One that is not True is left out where it never was, and the
// transition time changes with the status alone.
func setCondition(s *v1beta1.StatefulSetStatus, want v1beta1.StatefulSetCondition) {
	old := conditionOf(s, want.Type)
	switch {
	case want.Status == "":
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c v1beta1.StatefulSetCondition) bool { return c.Type == want.Type })
	case old == nil && want.Status != corev1.ConditionTrue:
	case old == nil:
		s.Conditions = append(s.Conditions, want)
	default:
		if old.Status == want.Status {
			want.LastTransitionTime = old.LastTransitionTime
		}
		*old = want
	}
}

// saysComplete reports whether the status of a StatefulSet says that all Pods are there, available, and as new as is wanted.
func saysComplete(o plan.Object) bool {
	set := o.(*v1beta1.StatefulSet)
	s := set.Status
	return set.Spec.Replicas != nil && s.Replicas == *set.Spec.Replicas && s.AvailableReplicas == s.Replicas && s.UpdatedReplicas == s.Replicas
}
