package uniteddeployment

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// When a subset counts as unschedulable, and for how long, where the user does not say.
const (
	criticalSeconds      = 30
	unschedulableSeconds = 300
)

// Reasons of the condition Schedulable. Wire: users' tools match them.
const (
	reasonReschedule = "reschedule"
	reasonRecover    = "recover"
	reasonCreated    = "created"
)

// mark is a label of a Pod that is to be written.
type mark struct {
	pod      *corev1.Pod
	reserved bool
}

func (v *State) critical() time.Duration {
	if a := v.Set.Spec.Topology.ScheduleStrategy.Adaptive; a != nil {
		return seconds(a.RescheduleCriticalSeconds, criticalSeconds)
	}
	return criticalSeconds * time.Second
}

func (v *State) duration() time.Duration {
	if a := v.Set.Spec.Topology.ScheduleStrategy.Adaptive; a != nil {
		return seconds(a.UnschedulableDuration, unschedulableSeconds)
	}
	return unschedulableSeconds * time.Second
}

func seconds(number *int32, otherwise int32) time.Duration {
	return time.Duration(valueOr(number, otherwise)) * time.Second
}

// judge finds out whether Pods of a subset can be scheduled.
func (v *State) judge(one *subset) {
	if !v.adaptive {
		return
	}
	if one.isAway() {
		one.condition, one.reserved = one.schedulable(), one.before.ReservedPods
		return
	}
	if one.now != nil {
		for _, p := range one.now.Pods {
			if v.isStuck(p) {
				one.stuck++
			}
		}
	}
	if v.reserving {
		v.reserve(one)
		return
	}
	before := one.schedulable()
	one.condition = before
	switch since := v.Now.Sub(before.LastTransitionTime.Time); {
	case one.stuck > 0 && one.now.ready < one.now.specified:
		v.turn(one, corev1.ConditionFalse, reasonReschedule, "timeout pending pods found")
	case before.Status != corev1.ConditionFalse || one.stuck > 0:
	case since >= v.duration():
		v.turn(one, corev1.ConditionTrue, reasonRecover,
			fmt.Sprintf("unschedulable subset recovered after %d seconds", int(v.duration()/time.Second)))
	default:
		v.recheck(v.duration() - since)
	}
}

// turn gives the condition Schedulable of a subset a status, with the time at which that changed.
func (v *State) turn(one *subset, status corev1.ConditionStatus, reason, message string) {
	before := one.schedulable()
	one.condition = v1beta1.UnitedDeploymentSubsetCondition{
		Type: v1beta1.UnitedDeploymentSubsetSchedulable, Status: status, LastTransitionTime: before.LastTransitionTime,
		Reason: reason, Message: message,
	}
	if before.Status != status {
		one.condition.LastTransitionTime = metav1.NewTime(v.Now.Truncate(time.Second))
	}
}

// isStuck reports whether no node has taken a Pod for too long, and asks for another look when that may be so.
func (v *State) isStuck(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodPending || p.Spec.NodeName != "" {
		return false
	}
	scheduled := pod.Condition(p, corev1.PodScheduled)
	if scheduled == nil || scheduled.Status != corev1.ConditionFalse || scheduled.Reason != corev1.PodReasonUnschedulable {
		return false
	}
	left := p.CreationTimestamp.Add(v.critical()).Sub(v.Now)
	v.recheck(left)
	return left <= 0
}

// reserve finds out which Pods of a subset are reserved.
func (v *State) reserve(one *subset) {
	if one.now == nil {
		return
	}
	for _, p := range one.now.Pods {
		if !pod.IsActive(p) {
			continue
		}
		reserved := v.isReserved(one, p)
		if reserved {
			one.reserved++
		}
		if want := fmt.Sprint(reserved); p.Labels[keys.ReservedPod] != want {
			one.marks = append(one.marks, mark{p, reserved})
		}
	}
	switch {
	case one.reserved > 0:
		v.turn(one, corev1.ConditionFalse, reasonReschedule, "reserved pods found")
	case one.isMarked() && one.now.active < one.now.specified:
		one.condition = one.schedulable() // the Pods that are missing are reserved when they come
	default:
		v.turn(one, corev1.ConditionTrue, reasonReschedule, "no reserved pods")
	}
}

// isReserved reports whether others stand in for a Pod. One that is reserved stays so until it has been ready for a while with the newest
// template; one that is not becomes so when no node takes it, or when it is born in a subset that is marked.
func (v *State) isReserved(one *subset, p *corev1.Pod) bool {
	updated := p.Labels[keys.SubsetRevision] == v.history.Update.Name
	switch p.Labels[keys.ReservedPod] {
	case "true":
		if !updated || !pod.IsReady(p) {
			return true
		}
		left := pod.ReadySince(p).Add(v.duration()).Sub(v.Now)
		v.recheck(left)
		return left > 0
	case "":
		if one.isMarked() && !pod.IsReady(p) {
			return true
		}
	}
	return v.isStuck(p) || !updated && v.hangs(one)
}

// hangs reports whether the update of a subset waits for Pods that no node takes: with its old Pods reserved, others get the new template.
func (v *State) hangs(one *subset) bool {
	if one.stuck == 0 || v.Set.Spec.UpdateStrategy.ManualUpdate != nil && v.Set.Spec.UpdateStrategy.ManualUpdate.Partitions[one.Name] > 0 {
		return false
	}
	for _, c := range v.Set.Status.Conditions {
		if c.Type == v1beta1.UnitedDeploymentUpdated && c.Status == corev1.ConditionFalse {
			left := c.LastTransitionTime.Add(v.critical()).Sub(v.Now)
			v.recheck(left)
			return left <= 0
		}
	}
	return false
}

// remark marks subsets, once it is known how many Pods they get, whose new Pods are to be reserved: one that has recovered and grows, and
// one that comes to others.
func (v *State) remark(one *subset) {
	switch {
	case !v.reserving, one.isAway():
	case one.now == nil && v.isLateComer(one):
		v.turn(one, corev1.ConditionFalse, reasonCreated, "newly-created subsets in reservation strategy")
	case one.now != nil && one.reserved == 0 && one.isMarked() && one.replicas > one.now.specified:
		v.turn(one, corev1.ConditionFalse, reasonReschedule, "subset just recovered scaled up")
	}
}
