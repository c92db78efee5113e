package advancedcronjob

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Status returns the status of the schedule. A status that the plan itself writes is left to the plan.
func Status(v State, p plan.Plan, _ apply.Outcome) v1beta1.AdvancedCronJobStatus {
	for _, a := range p.Actions() {
		if a.Verb == plan.UpdateStatus {
			return *v.Cron.Status.DeepCopy()
		}
	}
	return v.status()
}

// status returns the status by the state. The last slot never goes back, whatever becomes of its job: else its job would be created again.
func (v *State) status() v1beta1.AdvancedCronJobStatus {
	s := *v.Cron.Status.DeepCopy()
	if v.kind == nil || v.Cron.DeletionTimestamp != nil {
		return s
	}
	s.Type = v.kind.name
	s.Active = nil
	for _, c := range v.active() {
		reference := v.reference(c.GetName())
		reference.UID = c.GetUID()
		s.Active = append(s.Active, reference)
	}
	if v.pending {
		s.Active = append(s.Active, v.reference(nameFor(v.Cron, v.last)))
	}
	s.Active = slices.Clip(s.Active)
	if !v.last.IsZero() && (s.LastScheduleTime == nil || !s.LastScheduleTime.Time.Equal(v.last)) {
		s.LastScheduleTime = &metav1.Time{Time: v.last}
	}
	return s
}

// reference refers to a job by name.
func (v *State) reference(name string) corev1.ObjectReference {
	version, kind := v.kind.gvk.ToAPIVersionAndKind()
	return corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: v.Cron.Namespace, Name: name}
}
