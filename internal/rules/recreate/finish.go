package recreate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// daemonTimeout is how long a daemon may take to see a new request.
const daemonTimeout = time.Minute

// The messages of requests that end before their containers are recreated. Wire: users' tools match them.
const (
	podHasGone       = "pod has gone"
	daemonIsSilent   = "daemon has not responded for a long time"
	deadlineExceeded = "recreating has exceeded the activeDeadlineSeconds"
)

// IsCompleted reports whether the request has ended.
func IsCompleted(r *v1beta1.ContainerRecreateRequest) bool {
	return r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
}

// Overdue returns the message with which a request has to end whatever its daemon does, or an empty one and the time until it has to, zero
// for never. p is the Pod of the name that the request gives, nil if there is none.
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
		left := until(daemonTimeout)
		if left <= 0 {
			return daemonIsSilent, 0
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return "", wait
}

// Fail ends a request with a message. Those of its containers that have not ended fail with it.
func Fail(s *v1beta1.ContainerRecreateRequestStatus, message string, now time.Time) {
	for i := range s.ContainerRecreateStates {
		if state := &s.ContainerRecreateStates[i]; !isFinal(state.Phase) {
			state.Phase, state.Message = v1beta1.ContainerRecreateRequestFailed, message
		}
	}
	s.Message = message
	Complete(s, now)
}

// Complete ends a request, and sets the condition whether every container was recreated.
func Complete(s *v1beta1.ContainerRecreateRequestStatus, now time.Time) {
	at := metav1.NewTime(now).Rfc3339Copy()
	s.Phase, s.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, &at
	c := metav1.Condition{
		Type: v1beta1.ContainerRecreateRequestConditionSucceeded, Status: metav1.ConditionTrue, Reason: "ContainersRecreated",
		Message: "every container was recreated", LastTransitionTime: at,
	}
	if s.Message != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonOf(s.Message), s.Message
	} else if name := failed(s.ContainerRecreateStates); name != "" || len(s.ContainerRecreateStates) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "ContainerFailed", "container "+name+" was not recreated"
	}
	meta.SetStatusCondition(&s.Conditions, c)
}

func reasonOf(message string) string {
	switch message {
	case podHasGone:
		return "PodGone"
	case daemonIsSilent:
		return "DaemonSilent"
	case deadlineExceeded:
		return "DeadlineExceeded"
	default:
		return "RuntimeUnknown"
	}
}

// failed returns the first container that was not recreated.
func failed(states []State) string {
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
