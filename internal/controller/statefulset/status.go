package statefulset

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rollout"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
)

// reasonClaimTemplatesChange is the reason of FailedUpdatePod for a Pod that no update gives the volumes of the claim templates.
const reasonClaimTemplatesChange = "VolumeClaimTemplatesChanged"

// Status tells what was seen, and what failed. What was just asked for shows in the next pass.
func Status(v State, p plan.Plan, done apply.Outcome) v1beta1.StatefulSetStatus {
	s := *v.Set.Status.DeepCopy()
	s.ObservedGeneration = v.Set.Generation
	conditions := conditionsOf(&s)
	if v.problem != nil {
		conditions.Set(v.workload.Failure(string(v1beta1.StatefulSetConditionFailedUpdatePod), v.problem.Error()))
		return s
	}
	s.LabelSelector = v.selector.String()
	v.count(&s)
	if v.Set.DeletionTimestamp != nil {
		return s
	}
	s.CollisionCount = rollout.CollisionCount(v.workload.History, done)
	s.VolumeClaims = v.claimStatus()
	conditions.Set(v.workload.Failure(string(v1beta1.StatefulSetConditionFailedCreatePod), rollout.Failures(plan.Scale, p, done)))
	conditions.Set(v.failedUpdate(rollout.Failures(plan.Rollout, p, done)))
	progressing, _ := v.progressing()
	conditions.Set(progressing)
	conditions.Set(v.workload.Waiting(v.workloadMembers(), p, done))
	return s
}

// podCounts counts the Pods that the API server has completed, those that are being deleted included.
func (v *State) podCounts() rollout.Counts {
	c := rollout.Counts{Revision: v.workload.History.Update.Name}
	for _, m := range v.members() {
		if m.Pod.Status.Phase != "" {
			c.Add(&m.Member)
		}
	}
	return c
}

// count writes the numbers and the revisions into a status.
func (v *State) count(s *v1beta1.StatefulSetStatus) {
	c := v.podCounts()
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas = c.Replicas, c.Ready, c.Available
	s.UpdatedReplicas, s.UpdatedReadyReplicas, s.UpdatedAvailableReplicas = c.Updated, c.UpdatedReady, c.UpdatedAvailable
	s.CurrentReplicas = 0
	for _, m := range v.members() {
		if m.Pod.Status.Phase != "" && !m.Leaving && v.workload.History.IsCurrent(m.Pod) {
			s.CurrentReplicas++
		}
	}
	s.UpdateRevision, s.CurrentRevision = c.Revision, v.workload.History.Current.Name
	if v.isComplete(s) {
		s.CurrentRevision, s.CurrentReplicas = s.UpdateRevision, s.UpdatedReplicas
	}
}

// isComplete reports whether all Pods have left the current revision. A StatefulSet that is scaled to nothing in the middle of a canary has
// not done so: its Pods are created again at the revisions that they had.
func (v *State) isComplete(s *v1beta1.StatefulSetStatus) bool {
	replicas := v.replicas()
	if v.workload.OnDelete || replicas == 0 && v.limits.partition > 0 {
		return false
	}
	return s.Replicas == replicas && s.UpdatedReplicas == replicas && s.UpdatedReadyReplicas == replicas
}

// claimStatus tells how far the claims have grown.
func (v *State) claimStatus() []v1beta1.VolumeClaimStatus {
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

// failedUpdate is the condition FailedUpdatePod. Pods whose volumes are not those of the claim templates, and that no update will recreate,
// are named as well.
func (v *State) failedUpdate(message string) rollout.Condition {
	c := v.workload.Failure(string(v1beta1.StatefulSetConditionFailedUpdatePod), message)
	if !v.workload.OnDelete && !v.inPlaceOnly() {
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

// progressing returns the condition Progressing, and the time until it could change by time alone. A Pod less is progress as well:
// surplus ones go one after the other.
func (v *State) progressing() (rollout.Condition, time.Duration) {
	var now v1beta1.StatefulSetStatus
	v.count(&now)
	expected := max(v.replicas()-int32(v.limits.partition), 0)
	if v.workload.OnDelete {
		expected = 0
	}
	was := v.Set.Status
	return v.workload.Progressing(rollout.Progress{
		Complete: now.Replicas == v.replicas() && now.UpdatedReplicas == now.Replicas && now.UpdatedAvailableReplicas == now.Replicas,
		Reached:  expected < v.replicas() && expected <= now.UpdatedAvailableReplicas && now.AvailableReplicas >= v.replicas(),
		Moved:    countsIn(now).Beyond(countsIn(was)) || now.Replicas < was.Replicas && was.Replicas > v.replicas(),

		Restarted: now.UpdateRevision != was.UpdateRevision,
	}, conditionsOf(&was).Get(string(v1beta1.StatefulSetConditionProgressing)))
}

func countsIn(s v1beta1.StatefulSetStatus) rollout.Counts {
	return rollout.Counts{
		Revision: s.UpdateRevision, Updated: s.UpdatedReplicas, Ready: s.ReadyReplicas,
		UpdatedReady: s.UpdatedReadyReplicas, UpdatedAvailable: s.UpdatedAvailableReplicas,
	}
}

// conditionsOf returns the conditions of a status. Only Progressing says when it last said something new.
func conditionsOf(s *v1beta1.StatefulSetStatus) rollout.Conditions[v1beta1.StatefulSetCondition] {
	return rollout.Conditions[v1beta1.StatefulSetCondition]{
		List: &s.Conditions,
		From: func(c v1beta1.StatefulSetCondition) rollout.Condition {
			out := rollout.Condition{
				Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
				LastUpdate: c.LastTransitionTime, LastTransition: c.LastTransitionTime,
			}
			if c.LastUpdateTime != nil {
				out.LastUpdate = *c.LastUpdateTime
			}
			return out
		},
		To: func(c rollout.Condition) v1beta1.StatefulSetCondition {
			out := v1beta1.StatefulSetCondition{
				Type: v1beta1.StatefulSetConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
				LastTransitionTime: c.LastTransition,
			}
			if out.Type == v1beta1.StatefulSetConditionProgressing {
				out.LastUpdateTime = &c.LastUpdate
			}
			return out
		},
	}
}

// saysComplete reports whether the status of a StatefulSet says that all Pods are there, available, and as new as is wanted.
func saysComplete(set *v1beta1.StatefulSet) bool {
	s := set.Status
	return set.Spec.Replicas != nil && s.Replicas == *set.Spec.Replicas && s.AvailableReplicas == s.Replicas &&
		s.UpdatedReplicas == s.Replicas
}
