package broadcastjob

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Event reasons. Wire: users' alerts and tools match them, the one with spaces included.
const (
	eventSuccessfulCreate = "SuccessfulCreate"
	eventFailedCreate     = "FailedCreate"
	eventSuccessfulDelete = "SuccessfulDelete"
	eventFailedDelete     = "FailedDelete"
	eventJobComplete      = "JobComplete"
	eventDeadlineExceeded = "DeadlineExceeded"
	eventFailedPod        = "failed pod is found"
	eventPaused           = "Paused"
	eventContinue         = "Continue"
	eventTooManyActive    = "TooManyActivePods"
	eventDuplicatePod     = "DuplicatePodCreatedOnSameNode"
)

// verdict is how far a job has come, and what there is to say about it, if that is new.
type verdict struct {
	phase v1beta1.BroadcastJobPhase
	// message is that of the condition of a job that is over.
	message string
	// event, eventType and eventMessage are to be emitted with the status; empty for none.
	event, eventType, eventMessage string
	// pauses means that the failure policy turns spec.paused on.
	pauses bool
}

func (d verdict) isOver() bool {
	return d.phase == v1beta1.BroadcastJobCompleted || d.phase == v1beta1.BroadcastJobFailed
}

// judge says how far a job has come that was not over before. Nothing is judged while the user has paused it: it may run into its deadline, and
// a Pod may fail, which counts when it goes on.
func (v *Survey) judge() (verdict, error) {
	job := v.Job
	if job.Spec.Paused {
		return verdict{phase: v1beta1.BroadcastJobPaused}, nil
	}
	switch policy := job.Spec.FailurePolicy.Type; policy {
	case v1beta1.FailurePolicyTypeContinue:
	case v1beta1.FailurePolicyTypeFailFast, "":
		if v.failed > 0 {
			const message = "failure policy is FailurePolicyTypeFailFast and failed pod is found" // Wire
			return verdict{
				phase: v1beta1.BroadcastJobFailed, message: message,
				event: eventFailedPod, eventType: corev1.EventTypeWarning, eventMessage: message,
			}, nil
		}
	case v1beta1.FailurePolicyTypePause:
		if v.failed > pausedAt(job) {
			return verdict{phase: v1beta1.BroadcastJobPaused, pauses: true}, nil
		}
	default:
		return verdict{}, fmt.Errorf("failurePolicy.type is %q, want FailFast, Continue or Pause", policy)
	}
	if left, limited := v.untilDeadline(); limited && left <= 0 {
		message := fmt.Sprintf("Job %s/%s was active longer than specified deadline", job.Namespace, job.Name) // Wire
		return verdict{
			phase: v1beta1.BroadcastJobFailed, message: message,
			event: eventDeadlineExceeded, eventType: corev1.EventTypeWarning, eventMessage: message,
		}, nil
	}
	if v.isComplete() {
		message := fmt.Sprintf("Job completed, %d pods succeeded, %d pods failed", v.succeeded, v.failed) // Wire
		return verdict{
			phase: v1beta1.BroadcastJobCompleted, message: message,
			event: eventJobComplete, eventType: corev1.EventTypeNormal, eventMessage: message,
		}, nil
	}
	d := verdict{phase: v1beta1.BroadcastJobRunning}
	if job.Status.Phase == v1beta1.BroadcastJobPaused {
		d.event, d.eventType, d.eventMessage = eventContinue, corev1.EventTypeNormal, "Job goes on"
	}
	return d, nil
}

// ends reports whether the job is one that ends by itself.
func ends(job *v1beta1.BroadcastJob) bool {
	return job.Spec.CompletionPolicy.Type != v1beta1.NeverComplete
}

// isComplete reports whether every node is done, and no Pod is left that is sent away. A job for no node waits for one.
func (v *Survey) isComplete() bool {
	return ends(v.Job) && v.desired > 0 && v.active == 0 && !slices.ContainsFunc(v.places, func(p *place) bool { return p.counts() && !p.isDone() })
}

// untilDeadline returns how long the job may still take, if there is a limit. Pauses do not stop the clock.
func (v *Survey) untilDeadline() (left time.Duration, limited bool) {
	if !ends(v.Job) {
		return 0, false
	}
	return plan.UntilDeadline(v.Job.Status.StartTime, v.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds, v.Now)
}

// pausedAt returns the number of failures that the user has let pass: with 1, the second failure pauses the job again.
func pausedAt(job *v1beta1.BroadcastJob) int {
	n, err := strconv.Atoi(job.Annotations[keys.BroadcastJobPausedAtFailed])
	if err != nil {
		return 0 // absent, or not ours
	}
	return n
}
