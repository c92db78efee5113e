package persistentpodstate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Status holds the records, and says whether they can be kept and used.
func Status(s Snapshot, _ plan.Plan, _ apply.Outcome) v1beta1.PersistentPodStateStatus {
	if s.State.DeletionTimestamp != nil {
		return s.State.Status
	}
	out := *s.State.Status.DeepCopy()
	records, beyond := s.seen().Records()
	out.ObservedGeneration, out.PodStates, out.Recorded = s.State.Generation, records, int32(len(records))
	ready := s.ready(beyond)
	ready.Type, ready.ObservedGeneration = v1beta1.PersistentPodStateReady, s.State.Generation
	ready.LastTransitionTime = metav1.NewTime(s.Now)
	meta.SetStatusCondition(&out.Conditions, ready)
	return out
}

// ready returns what the condition Ready says. No number of Pods is in its message, so that it does not change with each of them.
func (s Snapshot) ready(beyond []string) metav1.Condition {
	ref := s.State.Spec.TargetRef
	no := func(reason, message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	waiting := s.waiting()
	switch {
	case s.Target == nil:
		return no(v1beta1.PersistentPodStateTargetNotFound,
			fmt.Sprintf("there is no %s %s in the namespace; its Pods are recorded as soon as there is", ref.Kind, ref.Name))
	case s.Target.Deleting:
		return no(v1beta1.PersistentPodStateTargetDeleting, fmt.Sprintf("%s %s is being deleted", ref.Kind, ref.Name))
	case s.Target.Renames:
		return no(v1beta1.PersistentPodStateNamesNotReused, fmt.Sprintf("CloneSet %s gives each new Pod an instance id of its own, "+
			"so that none comes back: set its spec.scaleStrategy.enablePVCReuse, with volumeClaimTemplates", ref.Name))
	case len(waiting) > 0:
		return no(v1beta1.PersistentPodStateUnschedulable, waiting[0].text)
	case len(beyond) > 0:
		return no(v1beta1.PersistentPodStateTooMany, tooMany(beyond))
	}
	return metav1.Condition{
		Status: metav1.ConditionTrue, Reason: v1beta1.PersistentPodStateRecording,
		Message: fmt.Sprintf("the Pods of %s %s are recorded when they are ready", ref.Kind, ref.Name),
	}
}
