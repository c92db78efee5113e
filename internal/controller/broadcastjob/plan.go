package broadcastjob

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/nodefit"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// Plan decides the next step from the state alone.
//
// The end of a job is written to its status before running Pods are deleted. A controller that is killed in between goes on with the
// deletions and never evaluates the job by Pods that it deleted itself.
func Plan(v State) plan.Plan {
	b := plan.For(v.summary())
	switch {
	case v.Job.DeletionTimestamp != nil:
		// The garbage collector takes the Pods along.
	case v.problem != nil:
		return b.Stop(v.problem)
	case isFinished(v.Job):
		v.cleanUp(b)
	default:
		v.recordResult(b)
		v.rememberFailures(b)
		if v.result.phase != v1beta1.BroadcastJobRunning {
			break
		}
		v.deleteUnfit(b)
		v.create(b)
		if left, limited := v.untilDeadline(); limited {
			b.Recheck(left, fmt.Sprintf("activeDeadlineSeconds %d", *v.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds))
		}
	}
	return b.Plan()
}

func (v *State) summary() string {
	out := fmt.Sprintf("BroadcastJob %s/%s", v.Job.Namespace, v.Job.Name)
	if v.Job.DeletionTimestamp != nil || v.problem != nil || isFinished(v.Job) {
		return out
	}
	out += fmt.Sprintf("   %s, nodes %d, active %d, succeeded %d, failed %d", v.result.phase, v.desired, v.active, v.succeeded, v.failed)
	if v.limit < v.desired {
		out += fmt.Sprintf(", parallelism %d", v.limit)
	}
	return out
}

// recordResult writes a status together with its event, which comes once and after the write.
func (v *State) recordResult(b *plan.Builder) {
	r := v.result
	if r.event == "" {
		return
	}
	after := v.Job.DeepCopy()
	after.Status = v.status()
	b.Do(plan.Action{
		Verb: plan.UpdateStatus, Concern: plan.Tidy, Before: v.Job, After: after,
		What: string(r.phase), Why: r.eventMessage, Event: r.event, EventType: r.eventType, EventMessage: r.eventMessage,
	})
}

// rememberFailures pauses the job at a new failure, if that is its policy, and notes how many there were. If the user has deleted a failed
// Pod to try again, the number goes down, so that the next failure pauses the job as well.
func (v *State) rememberFailures(b *plan.Builder) {
	if !v.result.pauses && v.failed >= pausedAt(v.Job) {
		return
	}
	after := v.Job.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[keys.BroadcastJobPausedAtFailed] = strconv.Itoa(v.failed)
	action := plan.Action{
		Verb: plan.Update, Concern: plan.Tidy, Before: v.Job, After: after, What: "forget failures", Why: "their Pods are gone",
	}
	if v.result.pauses {
		after.Spec.Paused = true
		action.What, action.Why = "pause", fmt.Sprintf("%d pods failed", v.failed)
		action.Event, action.EventType = eventPaused, corev1.EventTypeWarning
		action.EventMessage = fmt.Sprintf("Job is paused, %d pods failed: set spec.paused to false to go on", v.failed)
	}
	b.Do(action)
}

// deleteUnfit deletes the Pods that must leave their nodes.
func (v *State) deleteUnfit(b *plan.Builder) {
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

// create creates Pods on nodes that have none, in the order of the nodes' names, as many as parallelism allows.
func (v *State) create(b *plan.Builder) {
	if v.active > v.limit {
		why := fmt.Sprintf("more Pods are active than parallelism %s allows", v.Job.Spec.Parallelism)
		b.Hold(plan.Hold{Code: reason.Held, Why: why, Event: eventTooManyActive})
	}
	free, waiting := v.limit-v.active, 0
	used := sets.New(v.Taken...)
	for _, p := range v.Pods {
		used.Insert(p.Name)
	}
	for _, t := range v.targets {
		if len(t.members) > 1 {
			why := fmt.Sprintf("%d Pods of this job are on node %s", len(t.members), t.name)
			b.Hold(plan.Hold{Code: reason.Conflict, Name: t.name, Why: why, Event: eventDuplicatePod})
		}
		switch {
		case !t.fits || len(t.members) > 0:
		case free <= 0:
			waiting++
		default:
			free--
			b.Do(v.createOn(t, used))
		}
	}
	if waiting > 0 {
		b.Hold(plan.Hold{Code: reason.WaitBudget, Why: fmt.Sprintf("%d nodes wait: parallelism %d is used up", waiting, v.limit)})
	}
}

// createOn returns the write that creates the Pod of a node. Its name follows from the job and the node, so that the API server refuses a
// second Pod to a controller that does not know of the first.
func (v *State) createOn(t *target, used sets.Set[string]) plan.Action {
	p := pod.New(&v.Job.Spec.Template, v.Job, kind())
	p.Name = pod.NewName(v.Job.Name, used, string(v.Job.UID), t.name)
	p.Labels[keys.BroadcastJobName] = v.Job.Name
	p.Labels[keys.BroadcastJobControllerUID] = string(v.Job.UID)
	if v.Options.BindPods {
		p.Spec.NodeName = t.name
	} else {
		nodefit.Pin(&p.Spec, t.name)
	}
	return plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: p,
		What: "on " + t.name, Why: fmt.Sprintf("node %s has no Pod of the job", t.name),
		Event: eventSuccessfulCreate, EventMessage: "Created pod: " + p.Name, FailedEvent: eventFailedCreate,
	}
}

// cleanUp deletes what still runs of a finished job, and the job itself after its TTL.
func (v *State) cleanUp(b *plan.Builder) {
	for _, m := range v.members {
		if m.class == active || m.class == failed && m.pod.Status.Phase != corev1.PodFailed && m.pod.DeletionTimestamp == nil {
			b.Do(remove(m.pod, "the job is over"))
		}
	}
	b.Expire(v.Job, plan.TTL{Seconds: v.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished, Finished: finishedAt(v.Job), Now: v.Now})
}
