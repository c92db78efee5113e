package recreate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// silence is how long a daemon may take to see a new request.
const silence = time.Minute

// Why requests end before their containers are recreated.
//
// Wire: users' tools match these messages.
const (
	podHasGone       = "pod has gone"
	daemonIsSilent   = "daemon has not responded for a long time"
	deadlineExceeded = "recreating has exceeded the activeDeadlineSeconds"
)

// reasons of the condition Succeeded.
const (
	reasonRecreated        = "ContainersRecreated"
	reasonFailed           = "ContainerFailed"
	reasonPodGone          = "PodGone"
	reasonDaemonSilent     = "DaemonSilent"
	reasonDeadlineExceeded = "DeadlineExceeded"
	reasonRuntimeUnknown   = "RuntimeUnknown"
)

// IsCompleted reports whether the request has ended.
func IsCompleted(r *v1beta1.ContainerRecreateRequest) bool {
	return r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
}

// Overdue returns the message with which a request that goes on has to end whatever its daemon does; empty while it has not. Wait is then the time
// until it has if nothing happens; zero for never. p is the Pod of the request's name, nil if there is none.
//
// Example: a request of 12:00:00 with a deadline of 10 s that no daemon has seen is overdue at 12:00:10; without a deadline, at 12:01:00.
func Overdue(r *v1beta1.ContainerRecreateRequest, p *corev1.Pod, now time.Time) (message string, wait time.Duration) {
	if p == nil || p.DeletionTimestamp != nil || string(p.UID) != r.Labels[keys.RecreatePodUID] {
		return podHasGone, 0
	}
	until := func(limit time.Duration) time.Duration { return r.CreationTimestamp.Add(limit).Sub(now) }
	if seconds := r.Spec.ActiveDeadlineSeconds; seconds != nil {
		if wait = until(time.Duration(*seconds) * time.Second); wait <= 0 {
			return deadlineExceeded, 0
		}
	}
	if r.Status.Phase == "" {
		left := until(silence)
		if left <= 0 {
			return daemonIsSilent, 0
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return "", wait
}

// GiveUp ends a request with a message. What had not ended of its containers has failed by it.
func GiveUp(s *v1beta1.ContainerRecreateRequestStatus, message string, now time.Time) {
	for i := range s.ContainerRecreateStates {
		if state := &s.ContainerRecreateStates[i]; !isFinal(state.Phase) {
			state.Phase, state.Message = v1beta1.ContainerRecreateRequestFailed, message
		}
	}
	s.Message = message
	Complete(s, now)
}

// Complete ends a request, and says in a condition whether every container was recreated.
func Complete(s *v1beta1.ContainerRecreateRequestStatus, now time.Time) {
	at := metav1.NewTime(now).Rfc3339Copy()
	s.Phase, s.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, &at
	c := metav1.Condition{
		Type: v1beta1.ContainerRecreateRequestConditionSucceeded, Status: metav1.ConditionTrue, Reason: reasonRecreated,
		Message: "every container was recreated", LastTransitionTime: at,
	}
	if s.Message != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonOf(s.Message), s.Message
	} else if name := failed(s.ContainerRecreateStates); name != "" || len(s.ContainerRecreateStates) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonFailed, "container "+name+" was not recreated"
	}
	meta.SetStatusCondition(&s.Conditions, c)
}

func reasonOf(message string) string {
	switch message {
	case podHasGone:
		return reasonPodGone
	case daemonIsSilent:
		return reasonDaemonSilent
	case deadlineExceeded:
		return reasonDeadlineExceeded
	default:
		return reasonRuntimeUnknown
	}
}

// failed returns the first container that was not recreated.
func failed(states []v1beta1.ContainerRecreateRequestContainerRecreateState) string {
	for _, s := range states {
		if s.Phase != v1beta1.ContainerRecreateRequestSucceeded {
			return s.Name
		}
	}
	return ""
}

func isFinal(p v1beta1.ContainerRecreateRequestPhase) bool {
	return p == v1beta1.ContainerRecreateRequestSucceeded || p == v1beta1.ContainerRecreateRequestFailed
}
