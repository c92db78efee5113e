package ephemeraljob

import (
	"cmp"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Plan decides the next step from the state alone.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	switch {
	case v.Job.DeletionTimestamp != nil:
		v.release(b)
	case isFinished(v.Job):
		b.Expire(v.Job, plan.TTL{
			Seconds: cmp.Or(v.Job.Spec.TTLSecondsAfterFinished, new(int32(defaultTTLSeconds))), Finished: finishedAt(v.Job), Now: v.Now,
		})
	case v.problem != nil:
		return b.Stop(v.problem)
	case v.result.isFinished():
		v.recordResult(b)
	default:
		v.add(b)
		if left, limited := v.untilDeadline(); limited {
			b.Recheck(left, fmt.Sprintf("activeDeadlineSeconds %d", *v.Job.Spec.ActiveDeadlineSeconds))
		}
	}
	return b.Plan()
}

func (v *State) summary() string {
	out := fmt.Sprintf("EphemeralJob %s/%s", v.Job.Namespace, v.Job.Name)
	if v.Job.DeletionTimestamp != nil || isFinished(v.Job) || v.problem != nil {
		return out
	}
	return fmt.Sprintf("%s   %s, parallelism %d, match %d, waiting %d, running %d, succeeded %d, failed %d", out,
		v.result.phase, parallelism(v.Job), len(v.targets), v.waiting, v.running, v.succeeded, v.failed)
}

// release removes the finalizer of older installations: nothing has to be cleaned up.
func (v *State) release(b *plan.Builder) {
	if after := v.Job.DeepCopy(); controllerutil.RemoveFinalizer(after, keys.EphemeralContainersCleanup) {
		b.Do(plan.Action{
			Verb: plan.Update, Concern: plan.Tidy, Before: v.Job, After: after,
			What: "remove the finalizer", Why: "the job is deleted, and the containers stay in their Pods",
		})
	}
}

// recordResult writes the status of a job that finishes together with its event, which comes once and after the write.
func (v *State) recordResult(b *plan.Builder) {
	after := v.Job.DeepCopy()
	after.Status = v.status("")
	b.Do(plan.Action{
		Verb: plan.UpdateStatus, Concern: plan.Tidy, Before: v.Job, After: after, What: string(v.result.phase), Why: v.result.message,
		Event: v.result.reason, EventType: v.result.eventType(), EventMessage: v.result.message,
	})
}

// add adds the containers to as many Pods as parallelism allows.
func (v *State) add(b *plan.Builder) {
	if len(v.unfit) > 0 {
		b.Hold(plan.Hold{Code: reason.InvalidSpec, Why: fmt.Sprintf("%s can't take the containers: %s", pods(len(v.unfit)), v.leftOut()),
			Event: eventLeftOut})
	}
	if v.Job.Spec.Paused {
		if v.absent > 0 {
			b.Hold(plan.Hold{Code: reason.HeldByPause, Why: fmt.Sprintf("%s wait: the job is paused", pods(v.absent))})
		}
		return
	}
	free, waiting := parallelism(v.Job)-v.busy, 0
	for _, t := range v.targets {
		until, refused := v.Refused[t.pod.UID]
		switch {
		case t.State != ephemeral.Absent:
		case refused:
			left := until.Sub(v.Now)
			b.Hold(plan.Hold{Code: reason.AdmissionRefused, Name: t.pod.Name, Why: "it was not let have the containers"})
			b.Recheck(left, "Pods that were not let have the containers are tried again")
		case !pod.IsScheduled(t.pod):
			b.Hold(plan.Hold{Code: reason.WaitSchedule, Name: t.pod.Name, Why: "it has no node yet"})
		case free <= 0:
			waiting++
		default:
			free--
			b.Do(v.into(t))
		}
	}
	if waiting > 0 {
		b.Hold(plan.Hold{Code: reason.WaitBudget, Why: fmt.Sprintf("%s wait: parallelism %d is used up", pods(waiting),
			parallelism(v.Job))})
	}
}

func (v *State) into(t target) plan.Action {
	containers := v.Job.Spec.Template.EphemeralContainers
	var names []string
	for i := range containers {
		names = append(names, containers[i].Name)
	}
	return plan.Action{
		Verb: plan.AddContainers, Concern: plan.Scale, Before: t.pod, After: ephemeral.Into(t.pod, containers, v.Job.UID),
		What: "add " + strings.Join(names, ", "), Why: "the job is for this Pod", FailedEvent: reasonCreateFailed,
	}
}
