package rollout

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// typeWaiting is CloneSetConditionWaiting, StatefulSetConditionWaiting and DaemonSetConditionWaiting.
const typeWaiting = "Waiting"

// quietTime is how long nothing happens to the Pods of a workload before its status says what it waits for. What takes less is not worth a
// write of the status.
const quietTime = 10 * time.Second

// Waiting returns the condition Waiting: what keeps the workload from its end, while a pass can write nothing. That is the first Pod, by
// name, that is not in service, or, where all are, the budget that lets none go. What the user has ordered, such as a pause, is not waited
// for, and what fails has conditions of its own.
func (w *Workload) Waiting(members []*Member, p plan.Plan, done apply.Outcome) Condition {
	c := Condition{Type: typeWaiting, Status: corev1.ConditionFalse, Reason: string(reason.Nothing), LastUpdate: metav1.NewTime(w.Now)}
	for _, result := range done.Results {
		if result.Err == nil {
			return c
		}
	}
	if code, message := w.cause(members, p); code != "" && w.untilQuiet(members) <= 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, string(code), message
	}
	return c
}

// RecheckWaiting has the plan look again when the condition Waiting is due.
func (w *Workload) RecheckWaiting(members []*Member, p plan.Plan) plan.Plan {
	if !p.Empty() {
		return p
	}
	if code, _ := w.cause(members, p); code == "" {
		return p
	}
	wait := w.untilQuiet(members)
	if wait <= 0 || p.Recheck > 0 && p.Recheck <= wait {
		return p
	}
	p.Recheck, p.RecheckWhy = wait, "the status says what is waited for"
	return p
}

// cause returns what keeps the workload from its end; no code where nothing does.
func (w *Workload) cause(members []*Member, p plan.Plan) (code reason.Code, message string) {
	var first *Member
	others := 0
	for _, m := range members {
		switch {
		case m.Available && !m.Leaving:
		case first == nil || m.Pod.Name < first.Pod.Name:
			if first != nil {
				others++
			}
			first = m
		default:
			others++
		}
	}
	if first != nil {
		code, why := w.WhyOutOfService(first)
		message = first.Pod.Name + ": " + why
		switch {
		case others == 1:
			message += "; 1 more Pod is not in service"
		case others > 1:
			message += fmt.Sprintf("; %d more Pods are not in service", others)
		}
		return code, message
	}
	for _, h := range p.Holds {
		if h.Event == apply.EventWaits {
			return h.Code, h.Why
		}
	}
	return "", ""
}

// WhyOutOfService says why a Pod is not in service.
func (w *Workload) WhyOutOfService(m *Member) (code reason.Code, why string) {
	switch {
	case m.Leaving && len(m.Pod.Finalizers) > 0:
		return reason.WaitDeletion, "it is being deleted, and has finalizers: " + strings.Join(m.Pod.Finalizers, ", ")
	case m.Leaving:
		return reason.WaitDeletion, "it is being deleted"
	case m.IsHeld():
		return reason.WaitLifecycleHook, "its preDelete hook holds it"
	case m.State == pub.LifecycleStatePreparingUpdate || m.State == pub.LifecycleStateUpdated:
		return reason.WaitLifecycleHook, "its inPlaceUpdate hook holds it"
	case m.Ended:
		return reason.WaitReady, "it has ended"
	case inplace.Pending(m.Pod):
		return reason.WaitGrace, "its image changes once gracePeriodSeconds are over"
	}
	begins := m.State == pub.LifecycleStatePreparingNormal && w.Lifecycle != nil && w.Lifecycle.PreNormal != nil && pod.IsScheduled(m.Pod)
	switch code, why = pod.WhyNotReady(m.Pod); {
	case code != "" && (code != reason.NodeNotReady || !begins):
		return code, why
	case begins:
		return reason.WaitLifecycleHook, "its preNormal hook holds it"
	case !m.Ready:
		return reason.WaitReady, "it is not ready"
	}
	return reason.WaitMinReady, fmt.Sprintf("it is ready, and not available yet (minReadySeconds %d)", w.MinReadySeconds)
}

// untilQuiet returns how long it takes until nothing has happened to any Pod for the quiet time.
func (w *Workload) untilQuiet(members []*Member) time.Duration {
	var last time.Time
	happened := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	for _, m := range members {
		happened(m.Pod.CreationTimestamp.Time)
		if m.Pod.DeletionTimestamp != nil {
			happened(m.Pod.DeletionTimestamp.Time)
		}
		if ready := pod.Condition(m.Pod, corev1.PodReady); ready != nil {
			happened(ready.LastTransitionTime.Time)
		}
		if at, err := time.Parse(time.RFC3339, m.Pod.Annotations[keys.LifecycleTimestamp]); err == nil {
			happened(at)
		}
	}
	return last.Add(quietTime).Sub(w.Now)
}
