// Package recreate decides about requests to recreate containers of a running Pod: what admission fills in, when the manager ends a
// request, and, on the node, which container is to be stopped next.
//
// Its promise: no container is stopped twice for one request, whenever the daemon is killed. Before the daemon stops a container it has
// stored the ID of the container in the status, and it never stops one with another ID.
//
//	"" ──── Pending ──── Recreating ──── Completed        a request; one of a Pod at a time is Recreating
//	Pending ──── Recreating ──┬── Succeeded               one of its containers
//	                          └── Failed
package recreate

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

type (
	// Request is a request to recreate containers of a Pod.
	Request = v1beta1.ContainerRecreateRequest
	// Status is how far a request has come.
	Status = v1beta1.ContainerRecreateRequestStatus
	// Phase is the phase of a request or of one of its containers.
	Phase = v1beta1.ContainerRecreateRequestPhase
	// State is how far one container of a request has come.
	State = v1beta1.ContainerRecreateRequestContainerRecreateState
	// ContainerStatus is what a Pod's status says of one container.
	ContainerStatus = v1beta1.ContainerRecreateRequestSyncContainerStatus
)

// defaultGrace is the termination grace period of a Pod without one, in seconds.
const defaultGrace int64 = 30

// roundingSlack is added to the grace: the time of a condition has whole seconds.
const roundingSlack = 100 * time.Millisecond

// Fill completes a new request from the Pod and its node, so that no later change of the Pod redirects it: the UID of the Pod, the hooks to
// run, and the IDs by which the containers differ from their successors. The Pod has all containers that the request names.
func Fill(r *Request, p *corev1.Pod, node *corev1.Node) {
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	r.Labels[keys.RecreatePodUID] = string(p.UID)
	r.Labels[keys.RecreateNodeName] = p.Spec.NodeName
	r.Labels[keys.RecreateActive] = "true"
	if node.Labels[keys.NodeType] == keys.NodeTypeVirtual {
		r.Labels[keys.NodeType] = keys.NodeTypeVirtual
	}
	if r.Spec.Strategy == nil {
		r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{}
	}
	if r.Spec.Strategy.FailurePolicy == "" {
		r.Spec.Strategy.FailurePolicy = v1beta1.ContainerRecreateRequestFailurePolicyFail
	}
	if r.Spec.Strategy.TerminationGracePeriodSeconds == nil {
		r.Spec.Strategy.TerminationGracePeriodSeconds = new(ptr.Deref(p.Spec.TerminationGracePeriodSeconds, defaultGrace))
	}
	for i := range r.Spec.Containers {
		c := &r.Spec.Containers[i]
		container, status := pod.Lasting(p, c.Name), pod.LastingStatus(p, c.Name)
		if container.Lifecycle != nil && container.Lifecycle.PreStop != nil {
			c.PreStop = container.Lifecycle.PreStop.DeepCopy()
			if c.PreStop.HTTPGet != nil {
				c.Ports = slices.Clone(container.Ports)
			}
		}
		c.StatusContext = &v1beta1.ContainerRecreateRequestContainerContext{
			ContainerID: status.ContainerID, RestartCount: status.RestartCount,
		}
	}
}

// Pick returns which of the requests of one Pod is carried out now, nil if all have ended, and those that wait for it. The order is by
// phase, Recreating before Pending before new, and then by age.
func Pick(requests []*Request) (current *Request, waiting []*Request) {
	open := slices.DeleteFunc(slices.Clone(requests), func(r *Request) bool {
		return IsCompleted(r) || r.DeletionTimestamp != nil
	})
	if len(open) == 0 {
		return nil, nil
	}
	phases := []Phase{"", v1beta1.ContainerRecreateRequestPending, v1beta1.ContainerRecreateRequestRecreating}
	slices.SortFunc(open, func(a, b *Request) int {
		return cmp.Or(
			cmp.Compare(slices.Index(phases, b.Status.Phase), slices.Index(phases, a.Status.Phase)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return open[0], open[1:]
}

func unreadyGrace(r *Request) (time.Duration, bool) {
	if r.Spec.Strategy == nil || r.Spec.Strategy.UnreadyGracePeriodSeconds == nil {
		return 0, false
	}
	return pod.Seconds(*r.Spec.Strategy.UnreadyGracePeriodSeconds), true
}

// NeedsGrace reports whether the Pod has yet to be taken out of service for a request that is carried out.
func NeedsGrace(r *Request) bool {
	_, wanted := unreadyGrace(r)
	return wanted && r.Status.Phase == v1beta1.ContainerRecreateRequestRecreating && grace(r) == nil
}

// BeginGrace sets the condition that the grace has begun. Doing it again does not prolong it.
func BeginGrace(s *Status, now time.Time) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type:   v1beta1.ContainerRecreateRequestPreRecreateGrace,
		Status: metav1.ConditionTrue,
		Reason: v1beta1.ContainerRecreateRequestPreRecreateGrace,
		// Wire: users' tools show it.
		Message:            "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	})
}

// GraceLeft returns how long the Pod has to stay out of service before its first container is stopped. While begun is false, the manager
// has to take the Pod out of service first.
func GraceLeft(r *Request, now time.Time) (left time.Duration, begun bool) {
	period, wanted := unreadyGrace(r)
	if !wanted {
		return 0, true
	}
	since := grace(r)
	if since == nil {
		return 0, false
	}
	return max(0, since.LastTransitionTime.Add(period+roundingSlack).Sub(now)), true
}

func grace(r *Request) *metav1.Condition {
	c := meta.FindStatusCondition(r.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

// daemonTimeout is how long a daemon may take to see a new request.
const daemonTimeout = time.Minute

// The messages of requests that end before their containers are recreated. Wire: users' tools match them.
const (
	podHasGone       = "pod has gone"
	podHasEnded      = "pod has ended: its containers are not started again"
	daemonIsSilent   = "daemon has not responded for a long time"
	deadlineExceeded = "recreating has exceeded the activeDeadlineSeconds"
)

// IsCompleted reports whether the request has ended.
func IsCompleted(r *Request) bool {
	return r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
}

// Overdue returns the message with which a request has to end whatever its daemon does, or an empty one and the time until it has to, zero
// for never. p is the Pod of the name that the request gives, nil if there is none.
//
// Example: a request of 12:00:00 with a deadline of 10 s that no daemon has seen is overdue at 12:00:10; without a deadline, at 12:01:00.
// So is one whose Pod has ended.
func Overdue(r *Request, p *corev1.Pod, now time.Time) (message string, wait time.Duration) {
	if p == nil || p.DeletionTimestamp != nil || string(p.UID) != r.Labels[keys.RecreatePodUID] {
		return podHasGone, 0
	}
	until := func(limit time.Duration) time.Duration { return r.CreationTimestamp.Add(limit).Sub(now) }
	if seconds := r.Spec.ActiveDeadlineSeconds; seconds != nil {
		if wait = until(pod.Seconds(*seconds)); wait <= 0 {
			return deadlineExceeded, 0
		}
	}
	if ended := pod.IsFinished(p); ended || r.Status.Phase == "" {
		// Of a Pod that has ended its daemon can say of each container why it is not started again, unless it was evicted.
		left := until(daemonTimeout)
		switch {
		case left <= 0 && ended:
			return podHasEnded, 0
		case left <= 0:
			return daemonIsSilent, 0
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return "", wait
}

// Complete ends a request, and sets the condition whether every container was recreated. message says why it ends before that, and is empty
// if each of its containers has succeeded or failed. Containers that have done neither stay as far as they have come.
func Complete(s *Status, message string, now time.Time) {
	at := metav1.NewTime(now).Rfc3339Copy()
	s.Phase, s.Message, s.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, message, &at
	c := metav1.Condition{
		Type: v1beta1.ContainerRecreateRequestConditionSucceeded, Status: metav1.ConditionTrue, Reason: "ContainersRecreated",
		Message: "every container was recreated", LastTransitionTime: at,
	}
	if message != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonOf(message), message
	} else if name := failed(s.ContainerRecreateStates); name != "" || len(s.ContainerRecreateStates) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "ContainerFailed", "container "+name+" was not recreated"
	}
	meta.SetStatusCondition(&s.Conditions, c)
}

func reasonOf(message string) string {
	switch message {
	case podHasGone:
		return "PodGone"
	case podHasEnded:
		return "PodEnded"
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

func isFinal(p Phase) bool {
	return p == v1beta1.ContainerRecreateRequestSucceeded || p == v1beta1.ContainerRecreateRequestFailed
}
