package broadcastjob

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Plan decides the next step. It reads only the survey and changes nothing.
//
// That a job is over is written down before what still runs is deleted: a controller that is killed in between goes on with the deletions, and
// never judges the job by Pods that it deleted itself.
func Plan(v Survey) plan.Plan {
	b := plan.For(v.summary())
	switch {
	case v.Job.DeletionTimestamp != nil:
		// The garbage collector takes the Pods along.
	case v.problem != nil:
		return b.Stop(v.problem)
	case isFinished(v.Job):
		v.clearAway(b)
	default:
		v.announce(b)
		v.rememberFailures(b)
		if v.verdict.phase != v1beta1.BroadcastJobRunning {
			break
		}
		v.sendAway(b)
		v.create(b)
		if left, limited := v.untilDeadline(); limited {
			b.Recheck(left, fmt.Sprintf("activeDeadlineSeconds %d", *v.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds))
		}
	}
	return b.Plan()
}

func (v *Survey) summary() string {
	out := fmt.Sprintf("BroadcastJob %s/%s", v.Job.Namespace, v.Job.Name)
	if v.Job.DeletionTimestamp != nil || v.problem != nil || isFinished(v.Job) {
		return out
	}
	out += fmt.Sprintf("   %s, nodes %d, active %d, succeeded %d, failed %d", v.verdict.phase, v.desired, v.active, v.succeeded, v.failed)
	if v.limit < v.desired {
		out += fmt.Sprintf(", parallelism %d", v.limit)
	}
	return out
}

// announce writes a status that users are told about by an event: the event comes once, and after the fact.
func (v *Survey) announce(b *plan.Builder) {
	d := v.verdict
	if d.event == "" {
		return
	}
	after := v.Job.DeepCopy()
	after.Status = v.status()
	b.Do(plan.Action{
		Verb: plan.UpdateStatus, Concern: plan.Tidy, Before: v.Job, After: after,
		What: string(d.phase), Why: d.eventMessage, Event: d.event, EventType: d.eventType, EventMessage: d.eventMessage,
	})
}

// rememberFailures pauses the job at a new failure, if that is its policy, and keeps how many there were. A failure that is gone, because the user
// deleted its Pod to try again, does not excuse the next one.
func (v *Survey) rememberFailures(b *plan.Builder) {
	if !v.verdict.pauses && v.failed >= pausedAt(v.Job) {
		return
	}
	after := v.Job.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[keys.BroadcastJobPausedAtFailed] = strconv.Itoa(v.failed)
	action := plan.Action{Verb: plan.Update, Concern: plan.Tidy, Before: v.Job, After: after, What: "forget failures", Why: "their Pods are gone"}
	if v.verdict.pauses {
		after.Spec.Paused = true
		action.What, action.Why = "pause", fmt.Sprintf("%d pods failed", v.failed)
		action.Event, action.EventType = eventPaused, corev1.EventTypeWarning
		action.EventMessage = fmt.Sprintf("Job is paused, %d pods failed: set spec.paused to false to go on", v.failed)
	}
	b.Do(action)
}

// sendAway deletes the Pods that may not stay where they are.
func (v *Survey) sendAway(b *plan.Builder) {
	for _, m := range v.members {
		if m.unfit != "" {
			b.Do(remove(m.pod, m.unfit))
		}
	}
}

func remove(p *corev1.Pod, why string) plan.Action {
	return plan.Action{
		Verb: plan.Delete, Concern: plan.Scale, Before: p, What: "delete", Why: why,
		Event: eventSuccessfulDelete, EventMessage: "Delete pod: " + p.Name, FailedEvent: eventFailedDelete,
	}
}

// create creates the Pods of nodes that have none, in the order of the nodes' names, as many as parallelism allows.
func (v *Survey) create(b *plan.Builder) {
	if v.active > v.limit {
		b.Hold(plan.Hold{Why: fmt.Sprintf("more Pods are active than parallelism %s allows", v.Job.Spec.Parallelism), Event: eventTooManyActive})
	}
	room, waiting := v.limit-v.active, 0
	pods := v.newPods()
	for _, p := range v.places {
		if len(p.members) > 1 {
			b.Hold(plan.Hold{Name: p.name, Why: fmt.Sprintf("%d Pods of this job are on node %s", len(p.members), p.name), Event: eventDuplicatePod})
		}
		switch {
		case !p.fits || len(p.members) > 0:
		case room <= 0:
			waiting++
		default:
			room--
			b.Do(pods.create(p))
		}
	}
	if waiting > 0 {
		b.Hold(plan.Hold{Why: fmt.Sprintf("%d nodes wait: parallelism %d is used up", waiting, v.limit)})
	}
}

// clearAway deletes what still runs of a job that is over, and the job itself when its time has come.
func (v *Survey) clearAway(b *plan.Builder) {
	for _, m := range v.members {
		if m.class == active || m.class == failed && m.pod.Status.Phase != corev1.PodFailed && m.pod.DeletionTimestamp == nil {
			b.Do(remove(m.pod, "the job is over"))
		}
	}
	b.Expire(v.Job, plan.TTL{Seconds: v.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished, Finished: finishedAt(v.Job), Now: v.Now})
}
